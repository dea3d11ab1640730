package lockkeeper_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const mutants = "testdata/mutants.txt"

// A mutant is a change of one source file that removes the implementation of a requirement.
type mutant struct {
	id       string // of the requirement
	what     string // what the program does wrong after the change
	file     string
	old, new string
	dir, run string // the package of the test, and the pattern that selects it
	place    string // file and line of the mutant
}

// readMutants parses the table of mutants. Blank lines separate them.
func readMutants(text string) (list []mutant, err error) {
	var m *mutant
	for i, line := range strings.Split(text, "\n") {
		place := fmt.Sprintf("%s:%d", mutants, i+1)
		switch word, rest, _ := strings.Cut(line, " "); {
		case line == "":
			m = nil
		case line[0] == '#':
		case m == nil:
			list = append(list, mutant{id: word, what: rest, place: place})
			m = &list[len(list)-1]
		case word == "file":
			m.file = rest
		case word == "test":
			m.dir, m.run, _ = strings.Cut(rest, " ")
		case line[0] == '-':
			m.old = appendLine(m.old, line[1:])
		case line[0] == '+':
			m.new = appendLine(m.new, line[1:])
		default:
			return nil, fmt.Errorf("%s: unknown line %q", place, line)
		}
	}
	return list, nil
}

func appendLine(text, line string) string {
	if text == "" {
		return line
	}
	return text + "\n" + line
}

// apply returns the changed source file.
func (m mutant) apply() (string, error) {
	text, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), m.old); m.old == "" || n != 1 {
		return "", fmt.Errorf("%s has the old text %d times, want once", m.file, n)
	}
	return strings.Replace(string(text), m.old, m.new, 1), nil
}

// hasTest reports whether a package has the test that a mutant names.
func (m mutant) hasTest() (bool, error) {
	name, _, _ := strings.Cut(strings.Trim(m.run, "^$"), "/")
	name = strings.TrimRight(name, "$")
	files, err := filepath.Glob(filepath.Join(m.dir, "*_test.go"))
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return false, err
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == name {
				return true, nil
			}
		}
	}
	return false, err
}

// Each mutant still changes the code that it names, and has a test. `make mutate` runs these
// tests against the mutants, and each must fail.
func TestMutantsApply(t *testing.T) {
	list, err := readMutants(readText(t, mutants))
	if err != nil {
		t.Fatal(err)
	}
	requirements := readText(t, requirements)
	shown := map[string]bool{}
	for _, m := range list {
		next := "; next: correct the mutant, then " + m.command()
		if _, err := m.apply(); err != nil {
			t.Errorf("%s: %s: %v%s", m.place, m.id, err, next)
		}
		if found, err := m.hasTest(); err != nil || !found {
			t.Errorf("%s: %s: %s has no test %s (%v)%s", m.place, m.id, m.dir, m.run, err, next)
		}
		if !strings.Contains(requirements, "| "+m.id+" |") {
			t.Errorf("%s: unknown requirement %s", m.place, m.id)
		}
		shown[m.id] = true
	}
	if len(shown) < 80 {
		t.Errorf("%d requirements have mutants, want at least 80", len(shown))
	}
}

// command returns the command that runs the tests of the mutants of a requirement.
func (m mutant) command() string { return "make mutate RUN='^" + m.id + "$'" }
