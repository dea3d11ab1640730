package lockkeeper_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Each message of docs/troubleshooting.md is one that the program has. Its parts between the
// omitted names and times are in texts of the code.
func TestTroubleshootingHasMessages(t *testing.T) {
	var b strings.Builder
	err := walkModule(".", func(file, rel string) error {
		if strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if lit, is := n.(*ast.BasicLit); is && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil {
					b.WriteString(text + "\n")
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	texts, messages := b.String(), regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(readText(t, "docs/troubleshooting.md"), -1)
	for _, m := range messages {
		for part := range strings.SplitSeq(m[1], "…") {
			if !strings.Contains(texts, strings.Trim(part, " ")) {
				t.Errorf("docs/troubleshooting.md has the message %q, but no text of the program has %q", m[1], part)
			}
		}
	}
	if len(messages) < 20 {
		t.Errorf("only %d messages are explained", len(messages))
	}
}
