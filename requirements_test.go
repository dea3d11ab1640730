package lockkeeper_test

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the tests listed in docs/requirements.md")

const requirements = "docs/requirements.md"

var (
	// citing matches the part of a comment that names requirements.
	citing = regexp.MustCompile(`\bshows: ([A-Z]{2}-\d.*)$`)
	// requirement matches an id alone, and row a line of a table that begins with one.
	requirement = regexp.MustCompile(`^[A-Z]{2}-\d+$`)
	row         = regexp.MustCompile(`^\| ([A-Z]{2}-\d+) \|.* \| ([^|]*) \|$`)
)

// A citation is one test that claims to show one requirement.
type citation struct {
	id    string
	dir   string // of the test
	test  string
	place string // file and line of the comment
}

// citations returns every requirement that a comment of a Go file or the head of a script
// names.
func citations(root string) (list []citation, err error) {
	add := func(dir, test, place, comment string) error {
		m := citing.FindStringSubmatch(comment)
		if m == nil {
			return nil
		}
		for _, id := range strings.Fields(m[1]) {
			if !requirement.MatchString(id) {
				return fmt.Errorf("%s: %q after shows: is not the id of a requirement", place, id)
			}
			list = append(list, citation{id, dir, test, place})
		}
		return nil
	}
	err = walkModule(root, func(file, rel string) error {
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, group := range parsed.Comments {
			for _, c := range group.List {
				place := fmt.Sprintf("%s:%d", rel, files.Position(c.Pos()).Line)
				if err := add(path.Dir(rel), enclosing(parsed, c.Pos()), place, c.Text); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	scripts, err := filepath.Glob(filepath.Join(root, "testdata", "script", "*.txtar"))
	if err != nil {
		return nil, err
	}
	for _, file := range scripts {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		name := filepath.Base(file)
		for i, line := range strings.Split(string(text), "\n") {
			if !strings.HasPrefix(line, "#") {
				continue
			}
			place := fmt.Sprintf("testdata/script/%s:%d", name, i+1)
			if err := add("testdata/script", strings.TrimSuffix(name, ".txtar"), place, line); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// enclosing returns the name of the function that a comment documents or is in, or else of the
// file.
func enclosing(file *ast.File, at token.Pos) string {
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		start := f.Pos()
		if f.Doc != nil {
			start = f.Doc.Pos()
		}
		if start <= at && at < f.End() {
			return f.Name.Name
		}
	}
	return "(all tests)"
}

// trace fills the last column of each table in text with the tests that show its
// requirement. It returns the ids that text does not list or lists twice.
func trace(text string, cited []citation) (traced string, problems []string) {
	tests := map[string][]citation{}
	for _, c := range cited {
		tests[c.id] = append(tests[c.id], c)
	}
	lines, listed := strings.Split(text, "\n"), map[string]bool{}
	for i, line := range lines {
		m := row.FindStringSubmatchIndex(line)
		if m == nil {
			continue
		}
		id := line[m[2]:m[3]]
		if listed[id] {
			problems = append(problems, id+" is listed twice")
		}
		listed[id] = true
		lines[i] = line[:m[4]] + shownBy(tests[id]) + line[m[5]:]
	}
	for _, c := range cited {
		if !listed[c.id] {
			problems = append(problems, fmt.Sprintf("%s: unknown requirement %s", c.place, c.id))
		}
	}
	return strings.Join(lines, "\n"), problems
}

// shownBy lists tests by directory.
func shownBy(cited []citation) string {
	byDir := map[string][]string{}
	for _, c := range cited {
		byDir[c.dir] = append(byDir[c.dir], c.test)
	}
	var parts []string
	for _, dir := range slices.Sorted(maps.Keys(byDir)) {
		names := byDir[dir]
		slices.Sort(names)
		parts = append(parts, "`"+dir+"` "+strings.Join(slices.Compact(names), ", "))
	}
	return cmp.Or(strings.Join(parts, "; "), "-")
}

// The published list names every requirement that a test cites, and the tests that cite it.
func TestRequirementsAreTraced(t *testing.T) {
	cited, err := citations(".")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(requirements)
	if err != nil {
		t.Fatal(err)
	}
	traced, problems := trace(string(text), cited)
	for _, p := range problems {
		t.Errorf("%s; next: correct the comment, or add the requirement to %s", p, requirements)
	}
	if *update {
		if err := os.WriteFile(requirements, []byte(traced), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if traced != string(text) {
		t.Errorf("%s does not list the tests as they are; next: make trace", requirements)
	}
}

// The rules above can fail.
func TestTraceCanFail(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"a/a_test.go":                  "package a\n\n// shows: AA-1 AA-3\nfunc TestOne() {\n\t// This part shows: AA-2\n}\n\n// shows: AA-1\nvar x = 1\n",
		"testdata/script/hello.txtar":  "# shows: AA-1\n-- file --\n",
		"testdata/script/silent.txtar": "exec true # shows: AA-1\n",
	} {
		writeFile(t, root, name, text)
	}
	cited, err := citations(root)
	if err != nil {
		t.Fatal(err)
	}
	got, problems := trace("| AA-1 | One. | §1 | old |\n| AA-2 | Two. | - |\n| AA-2 | Two. | - |\n| AA-4 | Four. | old |", cited)
	want := "| AA-1 | One. | §1 | `a` (all tests), TestOne; `testdata/script` hello |\n| AA-2 | Two. | `a` TestOne |\n| AA-2 | Two. | `a` TestOne |\n| AA-4 | Four. | - |"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if want := []string{"AA-2 is listed twice", "a/a_test.go:3: unknown requirement AA-3"}; !slices.Equal(problems, want) {
		t.Errorf("problems %q, want %q", problems, want)
	}
	writeFile(t, root, "b/b_test.go", "package b\n\n// shows: AA-1, AA-2\n")
	if _, err := citations(root); err == nil || !strings.Contains(err.Error(), `b/b_test.go:3: "AA-1," after shows:`) {
		t.Errorf("a comma between ids: %v", err)
	}
}
