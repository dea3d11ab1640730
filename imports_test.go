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
// lower ranks, and packages of one rank do not import each other. So the engine and the
// stores meet only in the interfaces of package store. A name that ends with /... is the
// rank of every package in that folder that has no entry of its own.
var ranks = [][]string{
	{".", "internal/agent/program"},
	{"store", "tree", "durable", "internal/encoding/...", "internal/machine/...", "internal/merge", "internal/project/protect", "internal/project/generated", "internal/git/gitcmd", "internal/git/manager"},
	{"lock", "rescue", "store/memstore", "store/sqlstore", "internal/machine/process", "internal/project/config", "internal/session/snapshot", "internal/session/refusal"},
	{"gate", "internal/git", "internal/git/parcel", "internal/project/detect", "internal/agent/...", "internal/flow", "internal/flow/documents", "internal/flow/failure", "internal/flow/fleet", "internal/compat/lease", "internal/compat/bookfile", "internal/surface/feed", "internal/surface/patch"},
	{"sched", "internal/agent/enrol", "internal/agent/toolcache", "internal/compat/resource", "internal/compat/links", "internal/flow/progress", "internal/flow/research", "internal/flow/sample", "internal/project"},
	{"internal/flow/simulate", "internal/flow/run", "internal/git/coverage", "internal/landing", "internal/job", "internal/compat/tidy", "internal/surface/access"},
	{"internal/flow/conduct", "internal/session", "internal/session/deferred", "internal/compat/author", "internal/surface/facts"},
	{"internal/flow/report", "internal/session/hook", "internal/surface/acts"},
	{"internal/surface/view"},
	{"internal/surface/web", "internal/surface/mcp", "internal/surface/lsp", "internal/surface/doctor", "internal/compat/lfs"},
	{"internal/surface/api"},
	{"internal/surface/cli/term"},
	{"internal/surface/cli/command", "internal/surface/cli/top"},
	{"internal/surface/cli/locks", "internal/surface/cli/agents"},
	{"internal/surface/cli/jobs", "internal/surface/cli/compat", "internal/surface/cli/landings"},
	{"internal/surface/cli/server", "internal/surface/cli/inspect"},
	{"internal/surface/cli/flows", "internal/surface/cli/demo"},
	{"internal/surface/cli"},
	{"cmd/..."},
}

// testSupport lists packages made for tests: only test files and each other
// may import them, and they may import the packages that they test.
var testSupport = []string{"store/storetest", "durable/durabletest", "internal/agent/scriptedapi", "internal/project/projecttest", "internal/machine/machinetest", "internal/git/gittest", "internal/flow/simulate/drawn", "test/agents", "test/escape", "test/largerun", "test/machines", "test/ui"}

// plain lists packages that, including all their imports, use only the standard library.
var plain = []string{".", "lock", "store/memstore"}

// shapeless lists package names that say nothing about the purpose of a package.
var shapeless = []string{"util", "utils", "common", "helper", "helpers", "misc", "pkg"}

const maxLines = 400

// A source is one Go file of the module.
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

// own converts an import path to a directory of this module.
func own(imported string) (string, bool) {
	if imported == module {
		return ".", true
	}
	return strings.CutPrefix(imported, module+"/")
}

// sources parses the files of the module below root, with any build tags.
func sources(root string) (list []source, err error) {
	err = walkModule(root, func(file, rel string) error {
		s, err := parse(file)
		if err != nil {
			return err
		}
		s.dir = path.Dir(rel)
		list = append(list, s)
		return nil
	})
	return list, err
}

// walkModule calls visit for every Go file of the module below root, with its path relative to
// the root. It skips nested modules, test data and hidden directories.
func walkModule(root string, visit func(file, rel string) error) error {
	return filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a temporary file that was removed meanwhile
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
		return visit(file, filepath.ToSlash(rel))
	})
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

// rankOf returns the rank of a package: its own entry, or that of the nearest folder.
func rankOf(dir string) (rank int, known bool) {
	find := func(name string) bool {
		rank = slices.IndexFunc(ranks, func(dirs []string) bool { return slices.Contains(dirs, name) })
		return rank >= 0
	}
	if find(dir) {
		return rank, true
	}
	for folder := dir; folder != "."; folder = path.Dir(folder) {
		if find(folder + "/...") {
			return rank, true
		}
	}
	return 0, false
}

// importProblems checks the imports of every file against the ranks.
func importProblems(files []source) (problems []string) {
	report := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	known := func(dir string) bool {
		_, ok := rankOf(dir)
		return ok || slices.Contains(testSupport, dir)
	}
	below := func(dir, than string) bool {
		a, _ := rankOf(dir)
		b, _ := rankOf(than)
		return a < b
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
			case known(f.dir) && !below(dir, f.dir):
				report("%s imports %s, which is not below it", f.path(), dir)
			}
		}
	}
	return problems
}

// thirdParty returns the imports from other modules, of a package and everything it imports.
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

// formProblems checks that every package has a doc.go that says what it is for, and that no
// file is too long.
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

func writeFile(t *testing.T, root, name, text string) {
	t.Helper()
	file := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Each of the rules above can fail.
func TestRulesCanFail(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"doc.go":                               "// Package lockkeeper is a root.\npackage lockkeeper\nimport _ \"lockkeeper/tree\"\n",
		"tree/doc.go":                          "// Package tree is fine.\npackage tree\nimport _ \"golang.org/x/text/unicode/norm\"\n",
		"tree/tree_test.go":                    "package tree_test\nimport _ \"lockkeeper/internal/surface/cli\"\nimport _ \"" + module + "/nowhere\"\n",
		"lock/lock.go":                         "// Package lock has its comment in the wrong file.\npackage lock\nimport _ \"lockkeeper/store/memstore\"\n",
		"store/memstore/doc.go":                "// Package memstore is long.\npackage memstore\nimport _ \"lockkeeper/store/storetest\"\n" + strings.Repeat("\n", maxLines),
		"store/storetest/doc.go":               "// Package storetest may import the engine.\npackage storetest\nimport _ \"lockkeeper/lock\"\n",
		"internal/util/doc.go":                 "// Package util is unwanted.\npackage util\n",
		"tools/go.mod":                         "module elsewhere\n",
		"tools/tools.go":                       "package tools\nimport _ \"" + module + "/nowhere\"\n",
		"tree/testdata/broken.go":              "not Go\n",
		"cmd/lockkeeper/doc.go":                "// Command lockkeeper is the program.\npackage main\nimport _ \"lockkeeper/internal/surface/cli\"\n",
		"internal/surface/cli/doc.go":          "// Package cli is fine.\npackage cli\nimport _ \"lockkeeper/lock\"\n",
		"internal/surface/cli/only_windows.go": "package cli\nimport _ \"lockkeeper/cmd/lockkeeper\"\n",
	} {
		writeFile(t, root, name, text)
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
		"internal/surface/cli/only_windows.go imports cmd/lockkeeper, which is not below it")
	compare(thirdParty(files, "."),
		"tree/doc.go imports golang.org/x/text/unicode/norm, and . must do without")
	compare(formProblems(files),
		"lock has no doc.go with a package comment",
		"store/memstore/doc.go has 403 lines, more than 400")
}
