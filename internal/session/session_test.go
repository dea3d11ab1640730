package session

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
)

func newBook(t *testing.T) *Registry {
	t.Helper()
	dir, state := t.TempDir(), t.TempDir()
	settings := project.Settings{Dir: dir, Env: func(name string) (string, bool) { return state, name == "XDG_STATE_HOME" }}
	if _, err := project.Init(t.Context(), settings, project.InitOptions{}); err != nil {
		t.Fatal(err)
	}
	a, err := project.Open(t.Context(), settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return Open(a)
}

// in runs a function in a session.
func (b *Registry) in(t *testing.T, v Caller, do func(context.Context, *Session)) {
	t.Helper()
	s, err := b.Enter(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	do(t.Context(), s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func claims(t *testing.T, s *Session, paths ...string) (refused int) {
	t.Helper()
	var list []Write
	for _, p := range paths {
		list = append(list, Write{Path: p})
	}
	no, err := s.Claim(t.Context(), list...)
	if err != nil {
		t.Fatal(err)
	}
	return len(no)
}

// Live sessions have different callsigns, and each keeps its own.
func TestCallsigns(t *testing.T) {
	b := newBook(t)
	names := map[string]string{}
	for round := range 2 {
		for i := range 150 {
			id := fmt.Sprint("s", i)
			b.in(t, Caller{ID: id, Agent: "claude-code"}, func(_ context.Context, s *Session) {
				name := s.Info().Callsign
				if round == 1 && names[name] != id || round == 0 && names[name] != "" || s.New != (round == 0) {
					t.Errorf("%s is %s, and so is %s", id, name, names[name])
				}
				names[name] = id
			})
		}
	}
	live, err := b.Live(t.Context())
	if err != nil || len(live) != 150 {
		t.Errorf("%d live, %v", len(live), err)
	}
}

// A session whose first call is still under way is alive for others that begin meanwhile: they
// neither remove its record nor get its callsign.
func TestFirstCallIsUnderWay(t *testing.T) {
	b := newBook(t)
	who, _ := newWindow(t)
	ended := Caller{ID: "ended", Agent: "x", Process: who}
	b.in(t, ended, func(ctx context.Context, s *Session) { s.rec.Ended = true })
	for _, first := range []Caller{{ID: "new", Agent: "x"}, {ID: "continues", Agent: "x", Process: who}} {
		begun, err := b.Enter(t.Context(), first)
		if err != nil {
			t.Fatal(err)
		}
		b.in(t, Caller{ID: "beside " + first.ID, Agent: "x", Process: first.Process}, func(_ context.Context, s *Session) {
			if s.Info().Callsign == begun.Info().Callsign {
				t.Errorf("%s and the session beside it are both %s", first.ID, s.Info().Callsign)
			}
		})
		if r, err := readRecord(begun.file); err != nil || r.ID != first.ID {
			t.Errorf("the record of %s is %+v, %v", first.ID, r, err)
		}
		if err := begun.Close(); err != nil {
			t.Error(err)
		}
	}
}

// newWindow starts the process of a session and returns it with a function that ends it.
func newWindow(t *testing.T) (who *lockkeeper.Process, end func()) {
	t.Helper()
	host := exec.Command("sleep", "600")
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(func() {
		host.Process.Kill()
		host.Wait() // it was killed
	})
	t.Cleanup(end)
	is, err := process.Identify(host.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return &is, end
}

// A session that was killed and resumed in another process holds only what it claims there.
//
// shows: GP-5
func TestResumed(t *testing.T) {
	b := newBook(t)
	first, end := newWindow(t)
	b.in(t, Caller{ID: "a", Agent: "x", Process: first}, func(_ context.Context, s *Session) { claims(t, s, "one", "two") })
	end()
	second, _ := newWindow(t)
	b.in(t, Caller{ID: "a", Agent: "x", Process: second}, func(ctx context.Context, s *Session) {
		if claims(t, s, "one") != 0 {
			t.Error("it does not get what it had")
		}
		if holds, err := s.Holds(ctx); err != nil || !slices.Equal(holds, []string{"one"}) {
			t.Errorf("%v %v", holds, err)
		}
	})
	b.in(t, Caller{ID: "b", Agent: "x"}, func(_ context.Context, s *Session) {
		if claims(t, s, "one") != 1 || claims(t, s, "two") != 0 {
			t.Error("what it claimed after it was resumed does not hold, or what it had before does")
		}
	})
}

// If an agent's process is gone, its locks block no other session, whether that session acquires
// its first path or extends its grant.
//
// shows: GP-5
func TestDeadWindow(t *testing.T) {
	b := newBook(t)
	who, end := newWindow(t)
	b.in(t, Caller{ID: "a", Agent: "x", Process: who}, func(_ context.Context, s *Session) { claims(t, s, "one", "two") })
	other := Caller{ID: "b", Agent: "x"}
	b.in(t, other, func(_ context.Context, s *Session) {
		if claims(t, s, "three") != 0 || claims(t, s, "one") != 1 {
			t.Error("a living one's claim does not hold")
		}
	})
	end()
	if live, err := b.Live(t.Context()); err != nil || len(live) != 1 || live[0].ID != "b" {
		t.Errorf("there are %v, %v", live, err)
	}
	b.in(t, other, func(ctx context.Context, s *Session) {
		if claims(t, s, "one") != 0 {
			t.Error("a dead one's claim holds")
		}
		if holds, err := s.Holds(ctx); err != nil || !slices.Equal(holds, []string{"one", "three"}) {
			t.Errorf("%v %v", holds, err)
		}
	})
}

// A use renews the whole lease, at most once per heartbeat.
func TestSlides(t *testing.T) {
	b := newBook(t)
	v := Caller{ID: "a", Agent: "x"}
	var first, then time.Time
	expires := func(s *Session) time.Time {
		e, err := s.held(t.Context())
		if err != nil || e == nil || e.ExpiresAt == nil {
			t.Fatal(e, err)
		}
		return *e.ExpiresAt
	}
	b.in(t, v, func(_ context.Context, s *Session) { claims(t, s, "one"); first = expires(s) })
	b.in(t, v, func(_ context.Context, s *Session) { claims(t, s, "one"); then = expires(s) })
	if !then.Equal(first) {
		t.Error("renewed within a heartbeat")
	}
	b.now = func() time.Time { return time.Now().Add(2 * time.Minute) }
	b.in(t, v, func(_ context.Context, s *Session) { claims(t, s, "one"); then = expires(s) })
	if !then.After(first) {
		t.Error("not renewed")
	}
}

// The list of held paths follows the events and never misses a held path.
func TestHeldList(t *testing.T) {
	b := newBook(t)
	var want []string
	for i := range 30 {
		b.in(t, Caller{ID: fmt.Sprint("s", i%7), Agent: "x"}, func(ctx context.Context, s *Session) {
			path := fmt.Sprintf("dir/file_%d", i)
			claims(t, s, path)
			want = append(want, path)
			if i%11 == 10 {
				if err := s.Release(ctx); err != nil {
					t.Fatal(err)
				}
			}
		})
		if i == 20 {
			if err := os.WriteFile(filepath.Join(b.dir, "held"), []byte("damaged"), 0o600); err != nil {
				t.Fatal(err)
			}
			want = nil // the list is rebuilt without free paths
		}
		got, err := b.heldPaths(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range want {
			if !slices.Contains(got, p) {
				t.Fatalf("%d: %s is missing in %v", i, p, got)
			}
		}
	}
}

// The task of a prompt is its first meaningful line.
func TestFirstWords(t *testing.T) {
	for prompt, want := range map[string]string{"": "", "\n  fix   it\nplease": "fix it", "<system-reminder>x\nrate-limit login": "rate-limit login"} {
		if got := firstWords(prompt); got != want {
			t.Errorf("%q: %q", prompt, got)
		}
	}
}

// A time on another day includes the date.
func TestClock(t *testing.T) {
	now := time.Date(2026, 1, 31, 23, 50, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{time.Minute: "23:51:00", time.Hour: "2026-02-01 00:50:00"} {
		if got := Clock(now.Add(d), now); got != want {
			t.Errorf("in %s: %q", d, got)
		}
	}
}
