package landing_test

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/landing"
	"lockkeeper/internal/project"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens a new root, whose gate writes to app.
func open(t *testing.T) (*project.Project, project.Settings) {
	t.Helper()
	env := map[string]string{"XDG_STATE_HOME": t.TempDir(), "ALLOWED_WRITE_PATHS": "app"}
	s := project.Settings{Dir: t.TempDir(), Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	if _, err := project.Init(t.Context(), s, project.InitOptions{}); err != nil {
		t.Fatal(err)
	}
	a, err := project.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a, s
}

// writer opens a new root with a grant on paths.
func writer(t *testing.T, paths ...string) (a *project.Project, dir, grant string) {
	t.Helper()
	a, s := open(t)
	req := lockkeeper.Request{Holder: "otter"}
	for _, path := range paths {
		l, err := a.Resolve(lockkeeper.Write, path)
		if err != nil {
			t.Fatal(err)
		}
		req.Locks = append(req.Locks, l)
	}
	g, err := a.Acquire(t.Context(), req, 0)
	if err != nil {
		t.Fatal(err)
	}
	return a, s.Dir, g.ID
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// If a file of the directory becomes a link after it was checked, the target of the link does not
// land.
func TestMirrorFileSwapped(t *testing.T) {
	a, dir, grant := writer(t, "app/models/a.rb", "app/models/b.rb")
	from := t.TempDir()
	write(t, filepath.Join(from, "app/models/a.rb"), "a")
	write(t, filepath.Join(from, "app/models/b.rb"), "b")
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "secret")
	for name, swap := range map[string]func(path string) error{
		"link out":       func(path string) error { return os.Symlink(secret, path) },
		"pipe":           func(path string) error { return unix.Mkfifo(path, 0o644) },
		"directory":      func(path string) error { return os.Mkdir(path, 0o755) },
		"nothing at all": func(string) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(from, "app/models/b.rb")
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			write(t, path, "b")
			m, err := landing.OpenMirror(a, from)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := swap(path); err != nil {
				t.Fatal(err)
			}
			if _, err := landing.Apply(t.Context(), a, grant, m.Changes, false); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
				t.Errorf("landed, or failed otherwise: %v", err)
			}
			if _, err := os.Lstat(filepath.Join(dir, "app")); err == nil {
				t.Error("something landed")
			}
		})
	}
}

// One refusal of each kind does not prevent other changes from landing.
//
// shows: SW-75
func TestApplyLandsWhatIsPermitted(t *testing.T) {
	a, dir, grant := writer(t, "app/models/a.rb", "app/models/b.rb", "app/models/fixed.rb", "app/models/moved.rb", "config/c.yml")
	write(t, filepath.Join(dir, "app/models/fixed.rb"), "fixed")
	write(t, filepath.Join(dir, "app/models/moved.rb"), "by another writer")
	if err := os.Chmod(filepath.Join(dir, "app/models/fixed.rb"), 0o444); err != nil {
		t.Fatal(err)
	}
	moved := gate.Put("app/models/moved.rb", []byte("mine"))
	moved.Base = &lockkeeper.Version{}
	done, err := landing.Apply(t.Context(), a, grant, []gate.Change{
		gate.Put("app/models/b.rb", []byte("b")), gate.Put("app/models/fixed.rb", []byte("x")), moved,
		gate.Put("app/models/none.rb", []byte("x")), gate.Put("config/c.yml", []byte("x")), gate.Put("app/models/a.rb", []byte("a")),
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]lockkeeper.Code{
		"app/models/a.rb": "", "app/models/b.rb": "", "app/models/fixed.rb": lockkeeper.CodeInput,
		"app/models/moved.rb": lockkeeper.CodeViolation, "app/models/none.rb": lockkeeper.CodeViolation, "config/c.yml": lockkeeper.CodeViolation,
	}
	for _, o := range done.Files {
		got := lockkeeper.Code("")
		if o.Refusal != nil {
			got = lockkeeper.CodeOf(o.Refusal)
		}
		if code, known := want[o.Path]; !known || code != got || o.Landed != (code == "") {
			t.Errorf("%s: %q, landed %t, %v", o.Path, got, o.Landed, o.Refusal)
		}
		delete(want, o.Path)
	}
	if len(want) > 0 || done.Landing == nil || len(done.Landing.Changes) != 2 {
		t.Errorf("not told of %v; landing %+v", want, done.Landing)
	}
	for path, content := range map[string]string{"a.rb": "a", "b.rb": "b", "fixed.rb": "fixed", "moved.rb": "by another writer"} {
		if got, err := os.ReadFile(filepath.Join(dir, "app/models", path)); err != nil || string(got) != content {
			t.Errorf("%s holds %q, %v", path, got, err)
		}
	}
}
