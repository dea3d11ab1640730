package links_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/compat/links"
)

// broken lists the findings in short form, sorted by position.
func broken(rep *links.Report) (list []string) {
	for _, f := range rep.Findings {
		list = append(list, string(f.Problem)+" "+f.File+" "+f.Target)
	}
	return list
}

func wantBroken(t *testing.T, rep *links.Report, want ...string) {
	t.Helper()
	if got := broken(rep); !slices.Equal(got, want) {
		t.Errorf("broken:\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// By default only the navigation documents are checked. A missing required document is a
// finding; a missing optional one is not.
//
// shows: LE-31 LE-43 GP-39
func TestNavigationDocuments(t *testing.T) {
	dir := t.TempDir()
	wantBroken(t, check(t, dir, navigation()), "missing README.md README.md", "missing docs/INDEX.md docs/INDEX.md")
	put(t, dir, "README.md", "[index](docs/INDEX.md) [a part](docs/other.md#a-part) [none](docs/other.md#none)\n")
	put(t, dir, "docs/INDEX.md", "[history](BUILD_HISTORY.md)\n")
	put(t, dir, "docs/other.md", "# A part\n[broken](nowhere.md)\n")
	rep := check(t, dir, navigation())
	wantBroken(t, rep, "anchor README.md docs/other.md#none", "missing docs/INDEX.md BUILD_HISTORY.md")
	if rep.Documents != 2 || rep.Graph != nil {
		t.Errorf("%d documents, graph %v", rep.Documents, rep.Graph)
	}
	put(t, dir, "docs/BUILD_HISTORY.md", "[x](gone.md)\n")
	wantBroken(t, check(t, dir, navigation()), "anchor README.md docs/other.md#none", "missing docs/BUILD_HISTORY.md gone.md")
	deep := navigation()
	deep.Deep = true
	wantBroken(t, check(t, dir, deep), "anchor README.md docs/other.md#none", "missing docs/BUILD_HISTORY.md gone.md", "missing docs/other.md nowhere.md")
}

// Findings have line numbers with any line ending, and each is reported once, where it is
// defined.
//
// shows: GP-39 LE-33
func TestLines(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "x/other.md", "")
	put(t, dir, "README.md", "---\r\ntitle: x\r\n---\r\n\r\n# Title\r\n\r\n[a](a.md)\r\n\r\n> quoted\r\n> [b](b.md) and\r\n> `x/c.md`\r\n\r\n[d] [d] [d]\r\n\r\n[d]:\r\n  d.md\r\n\r\n<a\r\n  href=\"e.md\">e</a>\r\n")
	rep := check(t, dir, links.Options{Documents: []string{"README.md"}})
	want := map[string]int{"a.md": 7, "b.md": 10, "x/c.md": 11, "d.md": 16, "e.md": 19}
	if len(rep.Findings) != len(want) {
		t.Errorf("%v", broken(rep))
	}
	for _, f := range rep.Findings {
		if f.Line != want[f.Target] {
			t.Errorf("%s is in line %d, not in %d", f.Target, want[f.Target], f.Line)
		}
	}
}

// Excluded documents and ignored targets are matched as in .gitignore.
func TestIgnoreRules(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "README.md", "[a](gen/a.md) [b](docs/gen/b.md) [c](docs/c.png) [d](x/y/d.md) [e](e.md) [f](f.md)\n")
	put(t, dir, "old/deep/x.md", "[x](nowhere.md)\n")
	put(t, dir, "docs/draft-1.md", "[x](nowhere.md)\n")
	put(t, dir, "docs/final.md", "[x](../old/deep/x.md)\n")
	rep := check(t, dir, links.Options{Documents: []string{"README.md"}, Deep: true, Exclude: []string{"old/", "docs/draft-*"}, Ignore: []string{"gen", "*.png", "x/**/d.md", "./e.md"}})
	wantBroken(t, rep, "missing README.md f.md")
	if rep.Documents != 2 || rep.References != 2 {
		t.Errorf("%d documents, %d references", rep.Documents, rep.References)
	}
	for _, o := range []links.Options{{Ignore: []string{"[a"}}, {Exclude: []string{"/"}}} {
		_, err := links.Check(t.Context(), dir, o)
		if lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// A missing path gets a suggestion: the moved file, or a similar name, preferably in the
// same directory.
func TestNearest(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"docs/design.md", "docs/Install.md", "other/instal.md", "archive/2023/plan.md", "archive/notes/README.md",
		"a/same.md", "b/same.md", "archive/same2.md", "b/same2.md", "docs/deep/er/tools.md", "x/deep/er/tools.md", "y/er/tools.md", "docs/setup.yaml", "docs/ruled.md"} {
		put(t, dir, name, "")
	}
	for target, want := range map[string][2]string{ // nearest, and the fixed target
		"docs/desing.md":         {"docs/design.md", ""},
		"docs/install.md":        {"docs/Install.md", ""},
		"dosc/design.md":         {"docs/design.md", "docs/design.md"},
		`docs\design.md`:         {"docs/design.md", ""},
		"plan.md":                {"archive/2023/plan.md", "archive/2023/plan.md"},
		"./plan.md":              {"archive/2023/plan.md", "./archive/2023/plan.md"},
		"/plan.md#x":             {"archive/2023/plan.md", "/archive/2023/plan.md#x"},
		"notes/README.md":        {"archive/notes/README.md", "archive/notes/README.md"},
		"elsewhere/README.md":    {"README.md", ""},
		"same.md":                {"a/same.md", ""},
		"same2.md":               {"archive/same2.md", "archive/same2.md"},
		"old/deep/er/tools.md":   {"docs/deep/er/tools.md", ""},
		"nothing-like-it-at-all": {"", ""},
		"docs/setup.yml":         {"docs/setup.yaml", ""},
		"docs/unused.md":         {"", ""},
	} {
		put(t, dir, "README.md", "[x](<"+strings.ReplaceAll(target, `\`, `\\`)+">)\n")
		rep := check(t, dir, links.Options{Documents: []string{"README.md"}})
		if len(rep.Findings) != 1 {
			t.Fatalf("%s: %v", target, broken(rep))
		}
		f := rep.Findings[0]
		fixed := ""
		if f.Fix != nil {
			fixed = f.Fix.New
		}
		if f.Nearest != want[0] || fixed != want[1] {
			t.Errorf("%s: nearest %q, fixed %q; want %q", target, f.Nearest, fixed, want)
		}
	}
}

// A canceled check returns the cause.
func TestCanceled(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "README.md", "[x](y.md)\n")
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := links.Check(ctx, dir, links.Options{Documents: []string{"README.md"}, Deep: true}); !errors.Is(err, why) {
		t.Error(err)
	}
	if _, err := links.Check(t.Context(), dir+"/nowhere", links.Options{}); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
		t.Error(err)
	}
}
