package workspace

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper"
)

// Stored changes can be put into another workspace unchanged, and it reports the same changes.
//
// shows: GP-5
func TestKeptWorkComesBack(t *testing.T) {
	root := base(t)
	first := open(t, Options{Root: root})
	sh(t, first, `echo mine > a.rb; chmod 755 a.rb; rm b.rb; rm -r dir; mkdir -p deep/er; echo n > deep/er/new; chmod 600 run.sh; : > .hidden`)
	kept, err := first.Changes(t.Context())
	must(t, err)
	second := open(t, Options{Root: root})
	for _, c := range kept {
		if c.Now == nil {
			must(t, second.Delete(t.Context(), c.Path))
			continue
		}
		f, err := first.Open(c.Path)
		must(t, err)
		must(t, errors.Join(second.Put(t.Context(), c.Path, c.Now.Mode, f), f.Close()))
	}
	again, err := second.Changes(t.Context())
	must(t, err)
	if len(again) != len(kept) {
		t.Errorf("changes are %v, not %v", again, kept)
	}
	for i, c := range again {
		if k := kept[i]; c.Path != k.Path || c.Kind != k.Kind || c.Base != k.Base || c.Now.String() != k.Now.String() {
			t.Errorf("%v, not %v", c, k)
		}
	}
	wantChanges(t, reopen(t, second), changes(t, first)...)
}

// Put does not write through a link, below a file or into a private repository, and other hard
// links of a file keep their content.
//
// shows: GP-5
func TestPutFollowsNoLink(t *testing.T) {
	root := base(t)
	write(t, root, "nested/file", "nested")
	git(t, filepath.Join(root, "nested"), "init", "-q")
	w := open(t, Options{Root: root})
	before := contents(t, root)
	own := func(path string) string { return filepath.Join(tree(t, w), path) }
	onlyCopies(t, "no link leads from the shared tree into a mount")
	must(t, errors.Join(os.Remove(own("a.rb")), os.Link(filepath.Join(root, "b.rb"), own("a.rb"))))
	must(t, errors.Join(os.Remove(own("b.rb")), os.Symlink(filepath.Join(root, "b.rb"), own("b.rb"))))
	must(t, errors.Join(os.RemoveAll(own("dir")), os.Symlink(filepath.Join(root, "dir"), own("dir"))))
	put := func(path string) error { return w.Put(t.Context(), path, 0o600, strings.NewReader("laid")) }
	for _, path := range []string{"a.rb", "b.rb", "nested/new", "one/two/three"} {
		must(t, put(path))
		if info, err := os.Lstat(own(path)); err != nil || info.Mode() != 0o600 || read(t, tree(t, w), path) != "laid" {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	for path, want := range map[string]lockkeeper.Code{
		"dir/x.rb": lockkeeper.CodeRefused, "dir/new/file": lockkeeper.CodeRefused, "run.sh/x": lockkeeper.CodeRefused, "empty": lockkeeper.CodeRefused,
		".": lockkeeper.CodeInput, "..": lockkeeper.CodeInput, ".git/config": lockkeeper.CodeInput, "nested/.git/config": lockkeeper.CodeInput, ".lockkeeper": lockkeeper.CodeInput,
	} {
		if err := put(path); lockkeeper.CodeOf(err) != want {
			t.Errorf("put %s: %v", path, err)
		}
	}
	for _, path := range []string{".", "nested/.git", ".git"} {
		if err := w.Delete(t.Context(), path); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("delete %s: %v", path, err)
		}
	}
	if err := w.Delete(t.Context(), "one"); lockkeeper.CodeOf(err) != lockkeeper.CodeRefused {
		t.Errorf("deleted a directory with something in it: %v", err)
	}
	for _, path := range []string{"dir/x.rb", "none", "none/at/all", "run.sh/x", "empty", "link"} {
		must(t, w.Delete(t.Context(), path))
	}
	if err := w.Put(t.Context(), "x", fs.ModeSymlink|0o777, strings.NewReader("")); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
		t.Errorf("put a link: %v", err)
	}
	same(t, "the shared tree", contents(t, root), before)
	wantChanges(t, w, "modified a.rb", "modified b.rb", "type changed dir", "deleted dir/sub/z.rb", "deleted dir/x.rb", "deleted dir/y.rb",
		"deleted empty", "deleted link", "created nested/new", "created one/two/three")
}

// Put writes a file completely or not at all.
func TestPutIsAtomic(t *testing.T) {
	w := open(t, Options{Root: base(t)})
	broken := errors.New("broken")
	half := io.MultiReader(strings.NewReader("half"), readerFunc(func([]byte) (int, error) { return 0, broken }))
	if err := w.Put(t.Context(), "a.rb", 0o644, half); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	endless := readerFunc(func(part []byte) (int, error) {
		cancel()
		return len(part), nil
	})
	if err := w.Put(ctx, "a.rb", 0o644, endless); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	wantChanges(t, w)
	if isThere(filepath.Join(w.Home(), tempName)) {
		t.Error("half of it is left")
	}
}

type readerFunc func(part []byte) (int, error)

func (f readerFunc) Read(part []byte) (int, error) { return f(part) }

// An agent does not see excluded files, and files that it creates at their paths are noticed.
//
// shows: GP-5 SW-75
func TestLeftOut(t *testing.T) {
	root := newRepository(t)
	plant(t, root, map[string]string{".pipeline/run/log": "log", ".analysis/secret/a": "a", ".analysis/open/b": "b", "note": "n", ".pipelines": "another name"})
	l := &landings{t: t, root: root, paths: map[uint64][]string{}}
	without := []string{".pipeline/", ".analysis/secret", "note", "absent/too"}
	w := open(t, Options{Root: root, Landed: l.after, Without: without})
	wantLeftOut := func() {
		t.Helper()
		same(t, "the copy", contents(t, tree(t, w), gitName), contents(t, root, gitName, stateDir, ".pipeline", ".analysis/secret", "note", "absent/too"))
	}
	wantLeftOut()
	wantChanges(t, w)
	l.land("landed", ".pipeline/run/log", ".pipeline/new", ".analysis/secret/a", "note", ".analysis/open/b", "absent/too")
	moved, conflicts, err := w.CatchUp(t.Context())
	if err != nil || strings.Join(moved, " ") != ".analysis/open/b" || len(conflicts) > 0 {
		t.Errorf("%v, %v, %v", moved, conflicts, err)
	}
	must(t, os.Mkdir(filepath.Join(tree(t, w), "absent"), 0o755)) // the shared tree has it too
	moved, conflicts, err = w.Refresh(t.Context(), []string{".", ".pipeline", "note"})
	if err != nil || strings.Join(moved, " ") != "absent" || len(conflicts) > 0 {
		t.Errorf("%v, %v, %v", moved, conflicts, err)
	}
	wantLeftOut()
	sh(t, w, "mkdir -p .pipeline/run; echo mine > .pipeline/run/log; echo mine > note")
	again := reopen(t, w)
	w = again
	wantChanges(t, again, "created .pipeline/run/log", "created note")
	if _, conflicts, err := again.Refresh(t.Context(), []string{"."}); err != nil || len(conflicts) > 0 {
		t.Errorf("%v, %v", conflicts, err)
	}
	for path, c := range takeAll(t, again) {
		if data, err := os.ReadFile(c.File); err != nil || string(data) != "mine\n" {
			t.Errorf("%s: kept is %q, %v", path, data, err)
		}
	}
	wantLeftOut()
	for _, path := range []string{".", "..", "/etc", ".git"} {
		if _, err := Make(t.Context(), Options{Root: root, Dir: t.TempDir(), Without: []string{path}}); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("without %s: %v", path, err)
		}
	}
}
