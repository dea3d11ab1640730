package cli_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// audit accepts every kind of event.
func TestAuditKnowsEveryKind(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "..", "event.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	d := newConsole(t)
	asked := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Event") {
			return true
		}
		kind, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		asked++
		d.must(0, "audit", "--kind", kind)
		return true
	})
	if asked < 20 {
		t.Errorf("only %d kinds were found", asked)
	}
}
