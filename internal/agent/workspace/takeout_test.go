package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper"
)

// takeAll takes out all changes and returns them by path.
func takeAll(t *testing.T, w *Workspace) map[string]Taken {
	t.Helper()
	list, err := w.TakeOut(t.Context(), []string{"."})
	must(t, err)
	byPath := map[string]Taken{}
	for _, c := range list {
		byPath[c.Path] = c
	}
	return byPath
}

// TakeOut removes the changes of an agent and keeps its files.
//
// shows: GP-5 SW-75
func TestTakeOutAndRestore(t *testing.T) {
	root := newRepository(t)
	plant(t, root, map[string]string{"line\nbreak": "odd\n", "sp ace.txt": "one\ntwo\nthree\n", "no newline": "x", "\xffbytes": "b\n", "tab\tbed \"q\"": "t\n"})
	w := open(t, Options{Root: root})
	before := contents(t, tree(t, w), gitName)
	must(t, os.WriteFile(filepath.Join(tree(t, w), "\xffbytes"), []byte("changed\n"), 0o644))
	sh(t, w, `
		echo 'class User; end' > app/models/user.rb; chmod +x new.rb; chmod 755 app/models/post.rb; echo more >> app/models/post.rb
		rm app/run.sh; mkdir -p brand/new; echo n > brand/new/file; : > brand/empty; echo x > 'with "quote'
		printf 'one\n2\nthree\n' > 'sp ace.txt'; printf 'y' > 'no newline'; echo e > 'line
break'; echo t2 > 'tab	bed "q"'; rm -r docs`)
	after := contents(t, tree(t, w), gitName)
	taken, err := w.TakeOut(t.Context(), []string{"."})
	must(t, err)
	same(t, "what is left", contents(t, tree(t, w), gitName), before)
	wantChanges(t, w)
	for _, c := range taken {
		if c.Newer {
			t.Errorf("%q is newer", c.Path)
		}
		if c.Now != nil && c.Now.Mode.IsRegular() {
			data, err := os.ReadFile(c.File)
			if want := after[c.Path]; err != nil || !strings.HasSuffix(want, " "+string(data)) {
				t.Errorf("%q: kept is %q, %v, and it was %q", c.Path, data, err, want)
			}
		}
	}
}

// TakeOut with paths removes only the changes to those paths.
//
// shows: GP-5
func TestTakeOutSome(t *testing.T) {
	root := base(t)
	for _, c := range []struct {
		script string
		paths  []string
		taken  []string
		left   []string
	}{
		{"echo 1 > a.rb; echo 2 > b.rb", []string{"a.rb"}, []string{"modified a.rb"}, []string{"modified b.rb"}},
		{"echo 1 > a.rb", []string{"b.rb", "none", "dir"}, nil, []string{"modified a.rb"}},
		{"mkdir -p p/q/r; touch p/q/r/s p/t", []string{"p/q/r/s"}, []string{"created p/q/r/s"}, []string{"created p/t"}},
		{"mkdir -p p/q/r; touch p/q/r/s p/t", []string{"p/"}, []string{"created p/q/r/s", "created p/t"}, nil},
		{"rm -r dir", []string{"dir/sub"}, []string{"deleted dir/sub/z.rb"}, []string{"deleted dir/x.rb", "deleted dir/y.rb"}},
		{"rm -r dir; echo f > dir", []string{"dir"}, []string{"type changed dir", "deleted dir/sub/z.rb", "deleted dir/x.rb", "deleted dir/y.rb"}, nil},
		{"rm a.rb; mkdir a.rb; touch a.rb/x", []string{"a.rb"}, []string{"type changed a.rb", "created a.rb/x"}, nil},
		{"rm a.rb; mkdir a.rb; touch a.rb/x", []string{"a.rb/x"}, []string{"created a.rb/x"}, []string{"type changed a.rb"}},
		{"rm -r dir; ln -s empty dir", []string{"dir"}, []string{"type changed dir", "deleted dir/sub/z.rb", "deleted dir/x.rb", "deleted dir/y.rb"}, nil},
		{"rmdir empty; chmod 700 dir", []string{"empty", "dir"}, []string{"mode changed dir", "deleted empty"}, nil},
		{"rm link; ln -s x link; mkfifo p; chmod 400 a.rb", []string{"."}, []string{"mode changed a.rb", "modified link", "created p"}, nil},
		{"rm -rf dir/sub; touch dir/new; chmod 500 dir", []string{"dir/sub", "dir/new"}, []string{"created dir/new", "deleted dir/sub/z.rb"}, []string{"mode changed dir"}},
	} {
		t.Run(c.script, func(t *testing.T) {
			w := open(t, Options{Root: root})
			before := contents(t, tree(t, w))
			sh(t, w, c.script)
			taken, err := w.TakeOut(t.Context(), c.paths)
			must(t, err)
			var got []string
			for _, c := range taken {
				got = append(got, string(c.Kind)+" "+c.Path)
			}
			if fmt.Sprint(got) != fmt.Sprint(c.taken) {
				t.Errorf("taken out is %q, not %q", got, c.taken)
			}
			wantChanges(t, w, c.left...)
			takeAll(t, w)
			same(t, "what is left", contents(t, tree(t, w)), before)
		})
	}
}

// TakeOut restores the original from the shared file or from git. If neither has it, TakeOut
// reports the restored content as newer.
//
// shows: GP-5 GP-18
func TestOriginals(t *testing.T) {
	root := newRepository(t)
	write(t, root, "app/models/comment.rb", "class Comment\nend\n")
	w := open(t, Options{Root: root})
	paths := []string{"app/models/comment.rb", "app/models/post.rb", "app/models/user.rb", "new.rb", "trace.log"}
	for _, path := range paths {
		write(t, tree(t, w), path, "the agent's\n")
	}
	write(t, root, "app/models/user.rb", "landed over, was committed\n")
	write(t, root, "app/models/post.rb", "landed over, was not committed\n")
	must(t, os.Chmod(filepath.Join(root, "app/models/post.rb"), 0o600))
	must(t, os.Chmod(filepath.Join(root, "app/models/comment.rb"), 0o600))
	must(t, os.Remove(filepath.Join(root, "new.rb")))
	must(t, os.Remove(filepath.Join(root, "trace.log")))
	plant(t, root, map[string]string{"trace.log/is/now": "a directory"})
	taken := takeAll(t, w)
	for path, want := range map[string]struct {
		content string
		newer   bool
	}{
		"app/models/comment.rb": {"class Comment\nend\n", false},
		"app/models/user.rb":    {"class User\nend\n", false},
		"app/models/post.rb":    {"landed over, was not committed\n", true},
		"new.rb":                {"", true},
		"trace.log":             {"", true},
	} {
		c := taken[path]
		if c.Newer != want.newer {
			t.Errorf("%s: newer %t", path, c.Newer)
		}
		if data, err := os.ReadFile(c.File); err != nil || string(data) != "the agent's\n" {
			t.Errorf("%s: kept is %q, %v", path, data, err)
		}
		if want.content != "" && read(t, tree(t, w), path) != want.content {
			t.Errorf("%s is %q now", path, read(t, tree(t, w), path))
		}
	}
	if read(t, tree(t, w), "trace.log/is/now") != "a directory" {
		t.Error("what is in the place of a file was not brought")
	}
	if _, err := os.Lstat(filepath.Join(tree(t, w), "new.rb")); err == nil {
		t.Error("what others removed is there")
	}
	for path, mode := range map[string]os.FileMode{"post": 0o600, "comment": 0o644, "user": 0o644} {
		if info, err := os.Stat(filepath.Join(tree(t, w), "app/models", path+".rb")); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	wantChanges(t, w)
	if c := taken["app/models/user.rb"]; c.Base.Mode != 0o644 {
		t.Errorf("%v", c)
	}
}

// If an agent links a shared file into its workspace, Refresh and TakeOut do not change the
// shared file.
//
// shows: GP-5
func TestSecondNamesAreNotWrittenThrough(t *testing.T) {
	onlyCopies(t, "no link leads from the shared tree into a mount")
	root := base(t)
	w := open(t, Options{Root: root, Dir: filepath.Join(filepath.Dir(root), "workspaces")})
	before := contents(t, root)
	shared := func(path string) string { return filepath.Join(root, path) }
	own := func(path string) string { return filepath.Join(tree(t, w), path) }
	must(t, errors.Join(os.Remove(own("a.rb")), os.Link(shared("b.rb"), own("a.rb"))))
	must(t, errors.Join(os.Remove(own("b.rb")), os.Symlink(shared("b.rb"), own("b.rb"))))
	must(t, errors.Join(os.RemoveAll(own("dir")), os.Symlink(shared("dir"), own("dir"))))
	wantChanges(t, w, "modified a.rb", "type changed b.rb", "type changed dir", "deleted dir/sub/z.rb", "deleted dir/x.rb", "deleted dir/y.rb")
	_, _, err := w.Refresh(t.Context(), []string{"."})
	must(t, err)
	if _, err := w.TakeOut(t.Context(), []string{"dir/x.rb"}); lockkeeper.CodeOf(err) != lockkeeper.CodeRefused {
		t.Errorf("restored through a link: %v", err)
	}
	takeAll(t, w)
	same(t, "the shared tree", contents(t, root), before)
	same(t, "the workspace", contents(t, tree(t, w)), before)
}

func TestTakeOutRefusesInvalidPaths(t *testing.T) {
	w := open(t, Options{Root: base(t)})
	for _, path := range []string{"", "..", "a/../b", "/etc", "a//b", ".git", ".lockkeeper/x", "a\x00b", strings.Repeat("x", 4097)} {
		if _, err := w.TakeOut(t.Context(), []string{path}); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("%q: %v", path, err)
		}
		if _, _, err := w.Refresh(t.Context(), []string{path}); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("%q: %v", path, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.TakeOut(ctx, []string{"."}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
