package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"lockkeeper/internal/compat/links"
)

const (
	repository = "../../.." // seen from this package
	sourcePage = "docs/source-documents.md"
)

// A code is what the program's own sources define, by the names that people use for it.
type code struct {
	declared map[string][]string // files by package.Name and package.Type.Member
	literals map[string]bool     // texts in double quotes, and names of JSON fields
	schema   string              // of the databases
	presets  string              // the tables that init writes
}

func readCode(t *testing.T) *code {
	t.Helper()
	c := &code{declared: map[string][]string{}, literals: map[string]bool{}}
	err := filepath.WalkDir(repository, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		switch {
		case d.IsDir() && (name == "testdata" || name == "bench" || name == "tools" || strings.HasPrefix(name, ".") && file != repository):
			return fs.SkipDir
		case strings.HasSuffix(name, "_test.go"):
		case strings.HasSuffix(name, ".go"):
			return c.read(file)
		case strings.HasSuffix(name, ".sql"):
			text, err := os.ReadFile(file)
			c.schema += string(text)
			return err
		case strings.Contains(file, "/preset/") && strings.HasSuffix(name, ".yaml"):
			text, err := os.ReadFile(file)
			c.presets += string(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// read adds the declarations and texts of a file.
func (c *code) read(file string) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	below, err := filepath.Rel(repository, file)
	if err != nil {
		return err
	}
	add := func(names ...string) {
		name := strings.Join(append([]string{parsed.Name.Name}, names...), ".")
		c.declared[name] = append(c.declared[name], filepath.ToSlash(below))
	}
	for _, d := range parsed.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add(d.Name.Name)
			} else {
				add(typeName(d.Recv.List[0].Type), d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						add(name.Name)
					}
				case *ast.TypeSpec:
					add(spec.Name.Name)
					for _, member := range membersOf(spec.Type) {
						add(spec.Name.Name, member)
					}
				}
			}
		}
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				c.literals[text] = true
				name, _, _ := strings.Cut(reflect.StructTag(text).Get("json"), ",")
				c.literals[name] = true
			}
		}
		return true
	})
	return nil
}

func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// membersOf returns the fields of a struct or the methods of an interface.
func membersOf(e ast.Expr) (names []string) {
	var fields *ast.FieldList
	switch e := e.(type) {
	case *ast.StructType:
		fields = e.Fields
	case *ast.InterfaceType:
		fields = e.Methods
	}
	if fields == nil {
		return nil
	}
	for _, f := range fields.List {
		for _, name := range f.Names {
			names = append(names, name.Name)
		}
	}
	return names
}

var (
	backticked = regexp.MustCompile("`([^`]+)`")
	linked     = regexp.MustCompile("\\[`([^`]+)`\\]\\(([^)]+)\\)")
	routeForm  = regexp.MustCompile(`^(GET|POST|DELETE|PUT) /`)
	goForm     = regexp.MustCompile(`^[a-z]+(\.[A-Za-z]+){1,2}$`)
	envForm    = regexp.MustCompile(`^[A-Z]+(_[A-Z]+)+$`)
	flagForm   = regexp.MustCompile(`^--[a-z-]+`)
)

// missing returns what is wrong with a name of ours, or "".
func (c *code) missing(root *cobra.Command, settings map[string]bool, name string) string {
	_, err := os.Stat(filepath.Join(repository, name))
	switch {
	case routeForm.MatchString(name):
		return "" // a test of package api looks it up in the table of routes
	case strings.HasPrefix(name, "lockkeeper "):
		return missingCommand(root, strings.Fields(name)[1:])
	case strings.HasPrefix(name, `"`):
		if text := strings.Trim(name, `"`); !c.literals[text] {
			return "no source has this text"
		}
	case goForm.MatchString(name) && len(c.declared[name]) > 0, settings[name], err == nil:
	case envForm.MatchString(name):
		if !settings[name] && !c.literals[name] {
			return "no such variable"
		}
	case strings.HasPrefix(name, "dal_locks"):
		_, view, _ := strings.Cut(c.schema, "CREATE VIEW dal_locks")
		view, _, _ = strings.Cut(view, ";")
		if _, column, _ := strings.Cut(name, "."); view == "" || !strings.Contains(view, "AS "+column) {
			return "not in the schema"
		}
	case regexp.MustCompile(`(?m)^  ` + regexp.QuoteMeta(name) + `:`).MatchString(c.presets):
	default:
		return "neither a declaration, a setting, a file, a resource nor an operation"
	}
	return ""
}

// missingCommand returns what is wrong with a command line of words, flags and operands.
func missingCommand(root *cobra.Command, words []string) string {
	cmd, _, err := root.Find(words)
	if err != nil || cmd == root {
		return "no such command"
	}
	for _, word := range words {
		flag := flagForm.FindString(word)
		if flag != "" && cmd.Flags().Lookup(flag[2:]) == nil && cmd.InheritedFlags().Lookup(flag[2:]) == nil {
			return cmd.CommandPath() + " has no flag " + flag
		}
	}
	if rest := words[strings.Count(cmd.CommandPath(), " "):]; len(rest) > 0 && cmd.HasSubCommands() && regexp.MustCompile(`^[a-z]`).MatchString(rest[0]) {
		return "no such command below " + cmd.CommandPath()
	}
	return ""
}

// settingNames returns the keys of the configuration and their variables. A test of package
// config keeps the reference equal to the struct.
func settingNames(t *testing.T) map[string]bool {
	t.Helper()
	reference, err := os.ReadFile(filepath.Join(repository, "docs/config.md"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\||(?:Environment|Also): `([^`]+)`").FindAllStringSubmatch(string(reference), -1) {
		names[m[1]+m[2]] = true
	}
	return names
}

// Each name of ours on the page about the source documents exists: a declaration in the linked
// file, a command with its flags, a setting, a file, a text. A name without an equivalent has a
// reason. All links resolve.
func TestSourceDocumentsNameWhatExists(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, sourcePage))
	if err != nil {
		t.Fatal(err)
	}
	c, root, settings := readCode(t), testRoot(t), settingNames(t)
	rows := 0
	for n, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(strings.ReplaceAll(line, `\|`, "¦"), "|")
		if len(cells) != 5 || cells[1] == " there " || strings.HasPrefix(cells[1], "---") {
			continue
		}
		rows++
		ours := backticked.FindAllStringSubmatch(cells[2], -1)
		if len(ours) == 0 && (strings.TrimSpace(cells[2]) != "–" || strings.TrimSpace(cells[3]) == "") {
			t.Errorf("line %d: %s has neither a name here nor a reason", n+1, strings.TrimSpace(cells[1]))
		}
		for _, m := range ours {
			if why := c.missing(root, settings, strings.ReplaceAll(m[1], "¦", "|")); why != "" {
				t.Errorf("line %d: %s: %s", n+1, m[1], why)
			}
		}
		for _, m := range linked.FindAllStringSubmatch(cells[2], -1) {
			file := path.Join(path.Dir(sourcePage), m[2])
			if in := c.declared[m[1]]; goForm.MatchString(m[1]) && len(in) > 0 && !slices.Contains(in, file) {
				t.Errorf("line %d: %s is not in %s; next: link %s", n+1, m[1], file, in[0])
			}
		}
	}
	if rows < 250 {
		t.Errorf("only %d rows were read", rows)
	}
	report, err := links.Check(t.Context(), repository, links.Options{Documents: []string{sourcePage}})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		if f.Kind == links.Link || f.Kind == links.Definition {
			t.Errorf("%s:%d: %s: %s", f.File, f.Line, f.Target, f.Reason)
		}
	}
}
