package session

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/machine/process"
)

// newProcess starts a process for a session. The process ends with the test.
func newProcess(t *testing.T) *lockkeeper.Process {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	p, err := process.Identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return &p
}

// A caller that uses the id of a live session of another process is refused. So is a caller that
// hides its process.
//
// shows: GP-5
func TestAnothersSession(t *testing.T) {
	b := newBook(t)
	a := Caller{ID: "a", Agent: "x", Process: newProcess(t)}
	b.in(t, a, func(_ context.Context, s *Session) { claims(t, s, "one") })
	for _, from := range []*lockkeeper.Process{newProcess(t), nil} {
		s, err := b.Enter(t.Context(), Caller{ID: "a", Agent: "x", Process: from})
		if lockkeeper.CodeOf(err) != lockkeeper.CodeRefused {
			t.Errorf("from %v: %v", from, err)
		}
		if err == nil {
			s.Close()
		}
	}
	b.in(t, a, func(ctx context.Context, s *Session) {
		if held, err := s.Holds(ctx); err != nil || len(held) != 1 {
			t.Errorf("it holds %v, %v", held, err)
		}
	})
}

// The checks are off only if a person switched them off. A holder of the whole root does not
// switch them off.
//
// shows: GP-5
func TestRootLockIsNotOff(t *testing.T) {
	b := newBook(t)
	_, err := b.app.Acquire(t.Context(), lockkeeper.Request{Holder: "reader", TTL: time.Hour,
		Locks: []lockkeeper.Lock{{Target: lockkeeper.Target{Path: ".", Kind: lockkeeper.Tree}, Mode: lockkeeper.Read}}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if off, err := b.Off(t.Context()); off != nil || err != nil {
		t.Errorf("off: %+v, %v", off, err)
	}
	b.in(t, Caller{ID: "a", Agent: "x"}, func(_ context.Context, s *Session) {
		if claims(t, s, "one") != 1 {
			t.Error("it may write what another session reads")
		}
	})
	if p, err := b.SwitchOff(t.Context(), lockkeeper.Actor{Name: "ada", Kind: lockkeeper.ActorPerson}, "", time.Minute); p != nil || lockkeeper.CodeOf(err) != lockkeeper.CodeBlocked {
		t.Errorf("switched off beside a lock on the root: %+v, %v", p, err)
	}
}

// If a call is killed between acquiring a file and recording the grant, its own session can still
// write the file. Paths that are not needed become free.
//
// shows: GP-5
func TestKilledCall(t *testing.T) {
	for name, lose := range map[string]func(*Registry, string) error{
		"with its token":    func(*Registry, string) error { return nil },
		"without its token": func(b *Registry, id string) error { return b.app.Tokens.Drop(id) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(t)
			v := Caller{ID: "a", Agent: "x"}
			s, err := b.Enter(t.Context(), v)
			if err != nil {
				t.Fatal(err)
			}
			claims(t, s, "one")
			if err := lose(b, s.rec.GrantID); err != nil {
				t.Fatal(err)
			}
			s.lock.Close() // as the kernel does
			b.in(t, v, func(ctx context.Context, s *Session) {
				if claims(t, s, "one") != 0 {
					t.Error("it is locked out of its own file")
				}
				if err := s.Release(ctx); err != nil {
					t.Fatal(err)
				}
			})
			b.in(t, Caller{ID: "b", Agent: "x"}, func(_ context.Context, s *Session) {
				if claims(t, s, "one") != 0 {
					t.Error("its holder is gone")
				}
			})
		})
	}
}

// Changes during a command without a reported end are compared at the end of the turn. After that
// the session does not count as working.
//
// shows: GP-5
func TestInterruptedCall(t *testing.T) {
	b := newBook(t)
	holder, other := Caller{ID: "a", Agent: "x"}, Caller{ID: "b", Agent: "x"}
	file := filepath.Join(b.app.Root.Dir(), "one")
	wrote := func(v Caller, text string) {
		b.in(t, v, func(ctx context.Context, s *Session) {
			claims(t, s, "one")
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := s.Left(ctx, Call{}, []string{"one"}); err != nil {
				t.Fatal(err)
			}
		})
	}
	wrote(holder, "mine\n")
	b.in(t, other, func(ctx context.Context, s *Session) {
		if err := s.Begin("1", Call{Command: "awk …"}); err != nil {
			t.Fatal(err)
		}
	})
	if err := os.WriteFile(file, []byte("theirs\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.in(t, other, func(ctx context.Context, s *Session) {
		c, err := s.EndAll(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if found, err := s.Compare(ctx, c, true); err != nil || len(found) != 1 || found[0].Doubt == "" {
			t.Errorf("found %+v, %v", found, err)
		}
	})
	wrote(holder, "mine again\n")
	b.in(t, holder, func(ctx context.Context, s *Session) {
		if err := s.Begin("1", Call{Command: "refused by a person"}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.EndAll(ctx); err != nil {
			t.Fatal(err)
		}
	})
	if err := os.WriteFile(file, []byte("an editor's\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.in(t, holder, func(ctx context.Context, s *Session) {
		if found, err := s.Disturbed(ctx, Call{}); err != nil || len(found) != 1 || found[0].Rescue == "" {
			t.Errorf("disturbed: %+v, %v", found, err)
		}
	})
}

// A file that arrived with a moved directory and is older than the command is detected.
//
// shows: GP-5
func TestSwappedDirectory(t *testing.T) {
	b := newBook(t)
	root := b.app.Root.Dir()
	put := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b.in(t, Caller{ID: "a", Agent: "x"}, func(ctx context.Context, s *Session) {
		claims(t, s, "sub/one")
		put("sub/one", "mine\n")
		if err := s.Left(ctx, Call{}, []string{"sub/one"}); err != nil {
			t.Fatal(err)
		}
	})
	put("other/one", "theirs\n")
	old := time.Now().Add(20 * time.Millisecond) // longer than the resolution of the clock that stamps files
	for time.Now().Before(old) {
		time.Sleep(time.Until(old))
	}
	b.in(t, Caller{ID: "b", Agent: "x"}, func(ctx context.Context, s *Session) {
		if err := s.Begin("1", Call{Command: "mv"}); err != nil {
			t.Fatal(err)
		}
		for _, move := range [][2]string{{"sub", "old"}, {"other", "sub"}} {
			if err := os.Rename(filepath.Join(root, move[0]), filepath.Join(root, move[1])); err != nil {
				t.Fatal(err)
			}
		}
		if found, err := s.Compare(ctx, s.End("1", false), false); err != nil || len(found) != 1 || found[0].Path != "sub/one" {
			t.Errorf("found %+v, %v", found, err)
		}
	})
}

// Only parts of a command that may write show who wrote a file that they name.
func TestNaming(t *testing.T) {
	for command, want := range map[string]bool{
		"python3 fix.py app/b.txt":        true,
		"grep -n two b.txt; sleep 5":      false,
		"cat b.txt | python3 x.py":        false,
		"cat x > b.txt":                   true,
		"ls && awk 1 b.txt":               true,
		"sleep 5":                         false,
		"head b.txt\nmake out/b.txt":      true,
		"diff a.txt b.txt || echo differ": false,
	} {
		if (len(naming(command, "app/b.txt")) > 0) != want {
			t.Errorf("%q: want %v", command, want)
		}
	}
}

// A call without a reported end hides only changes to the files that it writes.
//
// shows: GP-5
func TestDisturbedBesideACall(t *testing.T) {
	b := newBook(t)
	put := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(b.app.Root.Dir(), path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b.in(t, Caller{ID: "a", Agent: "x"}, func(ctx context.Context, s *Session) {
		claims(t, s, "one", "two")
		put("one", "mine\n")
		put("two", "mine\n")
		if err := s.Left(ctx, Call{}, []string{"one", "two"}); err != nil {
			t.Fatal(err)
		}
		if err := s.Begin("an Edit that a person refuses", Call{Writes: []string{"two"}}); err != nil {
			t.Fatal(err)
		}
		put("one", "an editor's\n")
		put("two", "by the call, or not\n")
		if found, err := s.Disturbed(ctx, Call{}); err != nil || len(found) != 1 || found[0].Path != "one" || found[0].Rescue == "" {
			t.Errorf("disturbed: %+v, %v", found, err)
		}
	})
}

// A session's lock is valid only while its file exists. A caller that waited for a removed file
// waits for the new one.
func TestRemovedLock(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.lock")
	first, err := lockFile(name)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan *os.File, 1)
	go func() {
		f, err := lockFile(name)
		if err != nil {
			t.Error(err)
		}
		got <- f
	}()
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	first.Close()
	second := <-got
	defer second.Close()
	mine, err := second.Stat()
	if err != nil {
		t.Fatal(err)
	}
	there, err := os.Stat(name)
	if err != nil || !os.SameFile(mine, there) {
		t.Errorf("it has the lock on a file that is gone: %v", err)
	}
}
