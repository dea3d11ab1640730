package lockkeeper_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "lockkeeper"

// ranks orders the packages of the module. A package imports only packages of
// lower ranks; neighbours in one rank do not know each other, so the engine and
// the stores meet in the root's interfaces alone.
var ranks = [][]string{
	{"."},
	{"tree", "durable", "internal/jsonplace", "internal/jsonform", "internal/httpstatus", "internal/filelock", "internal/protect", "internal/boot", "internal/peer", "internal/strictjson"},
	{"lock", "rescue", "store/memstore", "store/sqlstore"},
	{"gate", "lease", "internal/process", "internal/sandbox", "internal/toolchain", "internal/supervisor", "internal/workspace", "internal/agent", "internal/agent/scripted", "internal/config", "internal/snapshot", "internal/bookfile", "internal/refusal", "internal/flow", "internal/sidecar", "internal/repo"},
	{"sched", "internal/enrol", "internal/resource", "internal/dossier", "internal/feed", "internal/research", "internal/sample"},
	{"internal/simulate", "internal/pipeline"},
	{"internal/app", "internal/links"},
	{"internal/acts", "internal/author", "internal/tidy", "internal/access", "internal/session", "internal/deferred"},
	{"internal/view"},
	{"internal/dashboard", "internal/mcpserver", "internal/lfs", "internal/hook", "internal/doctor"},
	{"internal/httpapi"},
	{"internal/cli"},
	{"cmd/lockkeeper", "cmd/lockkeeper-hook", "cmd/lockkeeper-scripted-agent"},
}

// testSupport lists packages made for tests: only test files and each other
// may import them, and they may import whatever they test.
var testSupport = []string{"store/storetest", "durable/durabletest", "internal/agent/scriptedapi", "internal/apptest", "internal/machinetest", "test/agents", "test/escape", "test/ui"}

// plain lists packages that, with all they import, use the standard library
// alone.
var plain = []string{".", "lock", "store/memstore"}

// shapeless names say nothing about what a package is for.
var shapeless = []string{"util", "utils", "common", "helper", "helpers", "misc", "pkg"}

const maxLines = 400

// source is one Go file of the module.
type source struct {
	dir     string // relative to the root, "." for the root itself
	name    string
	pkg     string
	doc     string
	imports []string
	lines   int
}

func (s source) path() string { return path.Join(s.dir, s.name) }
func (s source) isTest() bool { return strings.HasSuffix(s.name, "_test.go") }

// own turns an import path into a directory of this module.
func own(imported string) (string, bool) {
	if imported == module {
		return ".", true
	}
	return strings.CutPrefix(imported, module+"/")
}

// sources parses the files of the module below root, whatever their build
// tags. Modules of their own, test data and hidden directories are not part
// of it.
func sources(root string) ([]source, error) {
	var list []source
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // somebody's temporary file
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if rel == "." {
				return nil
			}
			_, statErr := os.Stat(filepath.Join(file, "go.mod"))
			if statErr == nil || name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
			return nil
		}
		s, err := parse(file)
		if err != nil {
			return err
		}
		s.dir = filepath.ToSlash(filepath.Dir(rel))
		list = append(list, s)
		return nil
	})
	return list, err
}

func parse(file string) (source, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return source{}, err
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return source{}, err
	}
	s := source{name: filepath.Base(file), pkg: parsed.Name.Name, lines: strings.Count(string(text), "\n")}
	s.doc = docText(parsed)
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return source{}, err
		}
		s.imports = append(s.imports, imported)
	}
	return s, nil
}

func docText(f *ast.File) string {
	if f.Doc == nil {
		return ""
	}
	return f.Doc.Text()
}

// importProblems holds every file against the ranks.
func importProblems(files []source) (problems []string) {
	rank := map[string]int{}
	for i, dirs := range ranks {
		for _, dir := range dirs {
			rank[dir] = i
		}
	}
	report := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	known := func(dir string) bool {
		_, ok := rank[dir]
		return ok || slices.Contains(testSupport, dir)
	}
	seen := map[string]bool{}
	for _, f := range files {
		if !seen[f.dir] {
			seen[f.dir] = true
			for _, part := range strings.Split(f.dir, "/") {
				if slices.Contains(shapeless, part) {
					report("%s: the name %q says nothing", f.dir, part)
				}
			}
			if !known(f.dir) {
				report("%s: not in the table of ranks", f.dir)
			}
		}
		supports := slices.Contains(testSupport, f.dir)
		for _, imported := range f.imports {
			dir, ok := own(imported)
			switch {
			case !ok:
			case !known(dir):
				report("%s imports %s, which is not in the table of ranks", f.path(), dir)
			case f.isTest() || supports:
			case slices.Contains(testSupport, dir):
				report("%s imports %s, which is for tests", f.path(), dir)
			case known(f.dir) && rank[dir] >= rank[f.dir]:
				report("%s imports %s, which is not below it", f.path(), dir)
			}
		}
	}
	return problems
}

// thirdParty lists what a package and all it imports take from other modules.
func thirdParty(files []source, start string) (problems []string) {
	seen, next := map[string]bool{start: true}, []string{start}
	for len(next) > 0 {
		dir := next[0]
		next = next[1:]
		for _, f := range files {
			if f.dir != dir || f.isTest() {
				continue
			}
			for _, imported := range f.imports {
				first, _, _ := strings.Cut(imported, "/")
				if below, ok := own(imported); ok {
					if !seen[below] {
						seen[below] = true
						next = append(next, below)
					}
				} else if strings.Contains(first, ".") || imported == "C" {
					problems = append(problems, fmt.Sprintf("%s imports %s, and %s must do without", f.path(), imported, start))
				}
			}
		}
	}
	return problems
}

// formProblems holds that every package says in doc.go what it is for and that
// no file outgrows a reader.
func formProblems(files []source) (problems []string) {
	documented := map[string]bool{}
	for _, f := range files {
		if f.isTest() {
			continue
		}
		want := "Package " + f.pkg + " "
		if f.pkg == "main" {
			want = "Command " + path.Base(f.dir) + " "
		}
		documented[f.dir] = documented[f.dir] || f.name == "doc.go" && strings.HasPrefix(f.doc, want)
		if f.lines > maxLines {
			problems = append(problems, fmt.Sprintf("%s has %d lines, more than %d", f.path(), f.lines, maxLines))
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(documented)) {
		if !documented[dir] {
			problems = append(problems, fmt.Sprintf("%s has no doc.go with a package comment", dir))
		}
	}
	return problems
}

func moduleSources(t *testing.T) []source {
	t.Helper()
	files, err := sources(".")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("no sources found")
	}
	return files
}

func TestImportsPointOneWay(t *testing.T) {
	for _, p := range importProblems(moduleSources(t)) {
		t.Error(p)
	}
}

func TestEngineNeedsStandardLibraryAlone(t *testing.T) {
	files := moduleSources(t)
	for _, start := range plain {
		for _, p := range thirdParty(files, start) {
			t.Error(p)
		}
	}
}

func TestPackagesHaveForm(t *testing.T) {
	for _, p := range formProblems(moduleSources(t)) {
		t.Error(p)
	}
}

// The rules above find what they are made to find.
func TestRulesCanFail(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"doc.go":                       "// Package lockkeeper is a root.\npackage lockkeeper\nimport _ \"lockkeeper/tree\"\n",
		"tree/doc.go":                  "// Package tree is fine.\npackage tree\nimport _ \"golang.org/x/text/unicode/norm\"\n",
		"tree/tree_test.go":            "package tree_test\nimport _ \"lockkeeper/internal/cli\"\nimport _ \"lockkeeper/nowhere\"\n",
		"lock/lock.go":                 "// Package lock has its comment in the wrong file.\npackage lock\nimport _ \"lockkeeper/store/memstore\"\n",
		"store/memstore/doc.go":        "// Package memstore is long.\npackage memstore\nimport _ \"lockkeeper/store/storetest\"\n" + strings.Repeat("\n", maxLines),
		"store/storetest/doc.go":       "// Package storetest may import the engine.\npackage storetest\nimport _ \"lockkeeper/lock\"\n",
		"internal/util/doc.go":         "// Package util is unwanted.\npackage util\n",
		"tools/go.mod":                 "module elsewhere\n",
		"tools/tools.go":               "package tools\nimport _ \"lockkeeper/nowhere\"\n",
		"tree/testdata/broken.go":      "not Go\n",
		"cmd/lockkeeper/doc.go":        "// Command lockkeeper is the program.\npackage main\nimport _ \"lockkeeper/internal/cli\"\n",
		"internal/cli/doc.go":          "// Package cli is fine.\npackage cli\nimport _ \"lockkeeper/lock\"\n",
		"internal/cli/only_windows.go": "package cli\nimport _ \"lockkeeper/cmd/lockkeeper\"\n",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files, err := sources(root)
	if err != nil {
		t.Fatal(err)
	}
	compare := func(got []string, want ...string) {
		t.Helper()
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
		}
	}
	compare(importProblems(files),
		"doc.go imports tree, which is not below it",
		"tree/tree_test.go imports nowhere, which is not in the table of ranks",
		"lock/lock.go imports store/memstore, which is not below it",
		"store/memstore/doc.go imports store/storetest, which is for tests",
		"internal/util: not in the table of ranks",
		`internal/util: the name "util" says nothing`,
		"internal/cli/only_windows.go imports cmd/lockkeeper, which is not below it")
	compare(thirdParty(files, "."),
		"tree/doc.go imports golang.org/x/text/unicode/norm, and . must do without")
	compare(formProblems(files),
		"lock has no doc.go with a package comment",
		"store/memstore/doc.go has 403 lines, more than 400")
}
