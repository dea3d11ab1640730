package project_test

import (
	"os"
	"path/filepath"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/project"
)

// A root inside another root covers nothing. Neither a link nor a copy removes the files below it
// from the locks of the outer root. A root above that belongs to another user does not matter.
//
// shows: GP-5
func TestRootInsideARoot(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	settings := func(dir, state string) project.Settings {
		return project.Settings{Dir: filepath.Join(base, dir), Env: func(name string) (string, bool) { return filepath.Join(base, state), name == "XDG_STATE_HOME" }}
	}
	must := func(errs ...error) {
		t.Helper()
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	must(os.MkdirAll(filepath.Join(base, "outer/sub"), 0o755), os.Mkdir(filepath.Join(base, "apart"), 0o755))
	for _, dir := range []string{"outer", "apart"} {
		_, err := project.Init(t.Context(), settings(dir, "state"), project.InitOptions{})
		must(err)
	}
	inner, apart := filepath.Join(base, "outer/sub/.lockkeeper"), filepath.Join(base, "apart/.lockkeeper")
	for name, put := range map[string]func() error{
		"link": func() error { return os.Symlink(apart, inner) },
		"copy": func() error { return os.CopyFS(inner, os.DirFS(apart)) },
	} {
		must(put())
		for _, state := range []string{"state", "elsewhere"} {
			s := settings("outer/sub", state)
			_, err := project.RootOf(filepath.Join(s.Dir, "file"), s.Env)
			if refused := lockkeeper.CodeOf(err) == lockkeeper.CodeStore; refused != (state == "state" || name == "link") {
				t.Errorf("%s, %s: %v", name, state, err)
			}
			if a, err := project.Open(t.Context(), s); err == nil {
				t.Errorf("%s, %s: opened %s", name, state, a.Root.Dir())
				must(a.Close())
			}
		}
		must(os.RemoveAll(inner))
	}
	a, err := project.Open(t.Context(), settings("outer/sub", "state"))
	must(err)
	must(a.Close())
}
