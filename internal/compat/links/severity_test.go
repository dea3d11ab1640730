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

func informational(rep *links.Report) (list []string) {
	for _, f := range rep.Informational {
		list = append(list, f.Target)
	}
	return list
}

// Findings in documents that links.informational names do not make the check fail, and have
// no fix.
func TestInformationalDocuments(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "README.md", "[x](gone.md)\n")
	put(t, dir, "old/notes.md", "[x](gone.md) [y](../docs/plan.md)\n")
	put(t, dir, "archive/docs/plan.md", "")
	o := links.Options{Documents: []string{"README.md"}, Deep: true, Lenient: []string{"old/"}}
	rep := check(t, dir, o)
	wantBroken(t, rep, "missing README.md gone.md")
	if got := informational(rep); !slices.Equal(got, []string{"gone.md", "../docs/plan.md"}) || len(rep.Fixes()) > 0 {
		t.Errorf("informational %v, fixes %v", got, rep.Fixes())
	}
	o.Lenient = nil
	if rep = check(t, dir, o); len(rep.Findings) != 3 || len(rep.Fixes()) != 1 {
		t.Errorf("%v, fixes %v", broken(rep), rep.Fixes())
	}
}

// An exception leaves out targets in the documents that it names, and must have a reason.
func TestExceptions(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "README.md", "[a](run/a.json) [b](gone.md) `./run/c.md`\n")
	put(t, dir, "docs/guide.md", "[a](../run/a.json) [d](gone.md)\n")
	put(t, dir, "run/keep.txt", "")
	o := links.Options{Documents: []string{"README.md", "docs/guide.md"}, Except: []links.Exception{
		{Name: "run-time", Documents: []string{"README.md"}, Targets: []string{"run"}, Reason: "created at run time"},
		{Name: "anywhere", Targets: []string{"docs/gone.md"}, Reason: "written by the next release"},
	}}
	wantBroken(t, check(t, dir, o), "missing README.md gone.md", "missing docs/guide.md ../run/a.json")
	o.Except = []links.Exception{{Name: "all", Documents: []string{"docs"}, Reason: "generated"}}
	wantBroken(t, check(t, dir, o), "missing README.md run/a.json", "missing README.md gone.md", "missing README.md ./run/c.md")
	for _, wrong := range []links.Exception{{Name: "x", Documents: []string{"docs"}, Reason: " "}, {Name: "x", Reason: "r"}, {Name: "x", Targets: []string{"[a"}, Reason: "r"}} {
		_, err := links.Check(t.Context(), dir, links.Options{Except: []links.Exception{wrong}})
		if lockkeeper.CodeOf(err) != lockkeeper.CodeInput || !strings.Contains(err.Error(), "link_exceptions.x") {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
}

// A missing path in text that git ignores is informational: it is made on each machine. A
// link to it is broken for the readers of the repository.
func TestPathsThatGitIgnores(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "docs/guide.md", "`build/app.log`, see src/gen.go and [log](../build/app.log), `src/other.go`\n")
	put(t, dir, "src/a.go", "")
	put(t, dir, "build/keep.txt", "")
	o := links.Options{Documents: []string{"docs/guide.md"}}
	o.Ignored = func(_ context.Context, paths []string) (map[string]bool, error) {
		if !slices.IsSorted(paths) || slices.Contains(paths, "docs/guide.md") {
			t.Errorf("asked for %q", paths)
		}
		return map[string]bool{"build/app.log": true, "src/gen.go": true}, nil
	}
	rep := check(t, dir, o)
	wantBroken(t, rep, "missing docs/guide.md ../build/app.log", "missing docs/guide.md src/other.go")
	if got := informational(rep); !slices.Equal(got, []string{"build/app.log", "src/gen.go"}) {
		t.Errorf("informational %q", got)
	}
	why := errors.New("git is broken")
	o.Ignored = func(context.Context, []string) (map[string]bool, error) { return nil, why }
	if _, err := links.Check(t.Context(), dir, o); !errors.Is(err, why) {
		t.Error(err)
	}
}

// A link with a leading slash also means the pages and files of a site.
func TestSites(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"www/content/guide.md", "www/content/install/_index.md", "www/content/start/index.md", "www/static/logo.png", "LICENSE.md"} {
		put(t, dir, name, "# A heading\n")
	}
	put(t, dir, "www/content/x.md", "[a](/guide/) [b](/guide#a-heading) [c](/guide/#none) [d](/install) [e](/start/) ![f](/logo.png) [g](/LICENSE.md) [h](/gone/) [i](guide/) [j](/)\n")
	o := links.Options{Documents: []string{"www/content/x.md"}, Sites: []string{"www/content", "www/static"}}
	wantBroken(t, check(t, dir, o), "anchor www/content/x.md /guide/#none", "missing www/content/x.md /gone/", "missing www/content/x.md guide/")
	o.Sites = nil
	if rep := check(t, dir, o); len(rep.Findings) != 8 {
		t.Errorf("%q", broken(rep))
	}
}
