package project_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/internal/machine/machinetest"
	"lockkeeper/internal/project"
)

// A directory that is mounted in a second place is still one directory. It cannot get a second set
// of locks. Each of its names leads to the root above it, with the same store and the same paths.
func TestBoundDirectories(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may mount")
	}
	base, err := filepath.EvalSymlinks(t.TempDir())
	must := func(errs ...error) {
		t.Helper()
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	must(err)
	in := func(path string) string { return filepath.Join(base, path) }
	settings := func(dir string) project.Settings {
		return project.Settings{Dir: in(dir), Env: func(name string) (string, bool) { return in("state"), name == "XDG_STATE_HOME" }}
	}
	bind := func(from, to string) {
		t.Helper()
		must(os.MkdirAll(in(to), 0o755))
		machinetest.Mount(t, in(from), in(to), "", unix.MS_BIND, "")
	}
	lockAt := func(dir, path string) (root, space, name string) {
		t.Helper()
		a, err := project.Open(t.Context(), settings(dir))
		must(err)
		l, err := a.Resolve(lockkeeper.Write, path)
		must(err, a.Close())
		return a.Root.Dir(), a.Space, l.Path
	}
	must(os.MkdirAll(in("outer/sub/deep"), 0o755))
	bind("outer/sub", "elsewhere/a b") // before any root exists
	bind("outer", "elsewhere/whole")
	bind("elsewhere/a b/deep", "elsewhere/twice")
	must(os.Symlink(in("elsewhere/twice"), in("link")))

	_, err = project.Init(t.Context(), settings("outer"), project.InitOptions{})
	must(err)
	for _, dir := range []string{"elsewhere/a b", "elsewhere/twice", "link", "elsewhere/whole/sub"} {
		if _, err := project.Init(t.Context(), settings(dir), project.InitOptions{}); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("%s became a root: %v", dir, err)
		}
		if _, err := os.Lstat(filepath.Join(in(dir), ".lockkeeper")); err == nil {
			t.Errorf("%s has locks of its own", dir)
		}
	}
	root, space, name := lockAt("outer/sub/deep", "f")
	for _, dir := range []string{"elsewhere/a b/deep", "elsewhere/whole/sub/deep", "elsewhere/twice", "link"} {
		if r, s, n := lockAt(dir, "f"); r != root || s != space || n != name {
			t.Errorf("%s: root %s, space %s, name %s; want %s, %s, %s", dir, r, s, n, root, space, name)
		}
	}
	if i, err := project.Init(t.Context(), settings("elsewhere/whole"), project.InitOptions{}); err != nil || !i.Already || i.Root != root {
		t.Errorf("the same root by another name: %+v, %v", i, err)
	}

	// The reverse: a root that was made through the mount is inside a later root above it.
	must(os.MkdirAll(in("above/child"), 0o755))
	bind("above/child", "elsewhere/child")
	i, err := project.Init(t.Context(), settings("elsewhere/child"), project.InitOptions{})
	must(err)
	if i.Root != in("above/child") {
		t.Errorf("the root is %s", i.Root)
	}
	_, err = project.Init(t.Context(), settings("above"), project.InitOptions{})
	must(err)
	a, err := project.Open(t.Context(), settings("above"))
	must(err)
	if l, err := a.Resolve(lockkeeper.Write, "child/f"); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
		t.Errorf("the outer root locks %v in the inner one: %v", l, err)
	}
	must(a.Close())
	if a, err := project.Open(t.Context(), settings("elsewhere/child")); err == nil {
		t.Errorf("two roots cover the files of the child: opened %s", a.Root.Dir())
		must(a.Close())
	}
}
