package app_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/app"
)

// writer opens a new root with a grant on paths.
func writer(t *testing.T, paths ...string) (a *app.App, dir, grant string) {
	t.Helper()
	s := lockable(t)
	a = open(t, s)
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

// Many who ask at once get one gate, and what they land is marked at the end.
func TestGateIsOpenedOnce(t *testing.T) {
	s := lockable(t)
	a, err := app.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	l, err := a.Resolve(lockkeeper.Write, "app/models/a.rb")
	if err != nil {
		t.Fatal(err)
	}
	g, err := a.Acquire(t.Context(), lockkeeper.Request{Holder: "otter", Locks: []lockkeeper.Lock{l}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	gates := make([]*gate.Gate, 8)
	for i := range gates {
		all.Go(func() {
			var err error
			if gates[i], err = a.Gate(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, other := range gates {
		if other != gates[0] {
			t.Fatal("two gates for one codebase")
		}
	}
	if _, err := a.Apply(t.Context(), g.ID, []gate.Change{gate.Put("app/models/a.rb", []byte("new"))}, true); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	entries, err := open(t, s).Locks.Entries(t.Context())
	if err != nil || len(entries) != 1 || entries[0].State != "held" {
		t.Errorf("after the gate was closed: %+v, %v", entries, err)
	}
}

// A file of the directory that became a link after it was looked at does not
// bring in what the link leads to.
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
			m, err := a.OpenMirror(from)
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
			if _, err := a.Apply(t.Context(), grant, m.Changes, false); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
				t.Errorf("landed, or failed otherwise: %v", err)
			}
			if _, err := os.Lstat(filepath.Join(dir, "app")); err == nil {
				t.Error("something landed")
			}
		})
	}
}

// One refusal of each kind keeps nothing else out.
//
// shows: SW-75
func TestApplyLandsWhatIsPermitted(t *testing.T) {
	a, dir, grant := writer(t, "app/models/a.rb", "app/models/b.rb", "app/models/fixed.rb", "app/models/moved.rb", "config/c.yml")
	write(t, filepath.Join(dir, "app/models/fixed.rb"), "fixed")
	write(t, filepath.Join(dir, "app/models/moved.rb"), "by somebody else")
	if err := os.Chmod(filepath.Join(dir, "app/models/fixed.rb"), 0o444); err != nil {
		t.Fatal(err)
	}
	moved := gate.Put("app/models/moved.rb", []byte("mine"))
	moved.Base = &lockkeeper.Version{}
	done, err := a.Apply(t.Context(), grant, []gate.Change{
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
	for path, content := range map[string]string{"a.rb": "a", "b.rb": "b", "fixed.rb": "fixed", "moved.rb": "by somebody else"} {
		if got, err := os.ReadFile(filepath.Join(dir, "app/models", path)); err != nil || string(got) != content {
			t.Errorf("%s holds %q, %v", path, got, err)
		}
	}
}
