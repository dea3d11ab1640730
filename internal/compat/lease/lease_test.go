package lease_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/compat/lease"
)

// shows: LE-4 LE-9 LE-10 LE-36
func TestAcquireAndRelease(t *testing.T) {
	s := newScene(t)
	l := s.holds("tidy_up")
	p, now := s.read(), s.clock.read().Wall.UTC()
	if p.Owner != "tidy_up" || p.Token != l.Token() || p.PID != os.Getpid() {
		t.Errorf("the file says %+v", p)
	}
	if p.CreatedAt != now.Truncate(time.Second) || p.RenewedAt != p.CreatedAt {
		t.Errorf("created %s and renewed %s, now it is %s", p.CreatedAt, p.RenewedAt, now)
	}
	if left := p.ExpiresAt.Sub(now); left < 30*time.Minute || left >= 30*time.Minute+time.Second {
		t.Errorf("it lasts %s", left)
	}
	text, err := os.ReadFile(s.path)
	must(t, err)
	if got := strings.Count(string(text), `Z"`); got != 3 {
		t.Errorf("%d times are in UTC with Z:\n%s", got, text)
	}
	s.release(l)
	s.isFree()
}

// shows: LE-11
func TestReleaseTwice(t *testing.T) {
	s := newScene(t)
	l := s.holds("tidy_up")
	s.release(l)
	if done, err := l.Release(t.Context()); done || err != nil {
		t.Errorf("second release: %v, %v", done, err)
	}
	other := s.holds("other")
	if done, err := l.Release(t.Context()); done || err != nil {
		t.Errorf("held by another process: %v, %v", done, err)
	}
	if s.read().Token != other.Token() {
		t.Error("the other holder's file was removed")
	}
}

// shows: LE-15 LE-18 LE-24 LE-36 CF-17 CF-18
func TestAcquireTimesOut(t *testing.T) {
	s := newScene(t)
	s.holds("tidy_up")
	before := s.read()
	err := s.lease("other").Acquire(t.Context(), 60*time.Millisecond)
	var held *lease.HeldError
	if !errors.As(err, &held) {
		t.Fatalf("got %v", err)
	}
	if held.By.Owner != "tidy_up" || held.By.PID != os.Getpid() || held.Waited < 60*time.Millisecond || held.Attempts < 2 {
		t.Errorf("got %+v", held)
	}
	if lockkeeper.CodeOf(err) != lockkeeper.CodeTimeout {
		t.Errorf("its code is %s", lockkeeper.CodeOf(err))
	}
	for _, fact := range []string{"another process is running", "tidy_up (pid ", "since 2", "until 2", "may be broken from 2", "next: retry with a timeout of 3"} {
		if !strings.Contains(err.Error(), fact) {
			t.Errorf("%q does not say %q", err, fact)
		}
	}
	if s.read() != before {
		t.Error("the lease was changed")
	}
}

// shows: LE-14 LE-25 LE-36
func TestSerialAcquisition(t *testing.T) {
	s := newScene(t)
	for _, owner := range []string{"first", "second", "third"} {
		s.release(s.holds(owner))
	}
}

// A waiter acquires the file soon after it is released.
func TestWaiterGetsIt(t *testing.T) {
	s := newScene(t)
	l := s.holds("first")
	got := make(chan error)
	go func() { got <- s.lease("second").Acquire(t.Context(), time.Minute) }()
	time.Sleep(20 * time.Millisecond) // it must succeed whether or not it is waiting by now
	s.release(l)
	must(t, <-got)
	if s.read().Owner != "second" {
		t.Errorf("the lease file belongs to %s", s.read().Owner)
	}
}

// Canceling the context ends the wait and leaves nothing behind.
func TestWaitingIsCalledOff(t *testing.T) {
	s := newScene(t)
	l := s.holds("first")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 30*time.Millisecond, errors.New("enough"))
	defer cancel()
	if err := s.lease("second").Acquire(ctx, time.Minute); err == nil || err.Error() != "enough" {
		t.Errorf("got %v", err)
	}
	s.release(l)
	s.isFree()
}

// shows: LE-5 LE-35 LE-36 CF-9 GP-44
func TestStaleIsBroken(t *testing.T) {
	s := newScene(t)
	s.write(s.foreign("crashed", 32*time.Minute-time.Second))
	if err := s.lease("next").Acquire(t.Context(), 0); lockkeeper.CodeOf(err) != lockkeeper.CodeTimeout {
		t.Fatalf("a second before the grace is over: %v", err)
	}
	s.clock.pass(2 * time.Second)
	l := s.holds("next")
	if s.read().Token != l.Token() {
		t.Errorf("the lease file belongs to %s", s.read().Owner)
	}
	if len(s.notes) != 1 || !strings.Contains(s.notes[0], "of crashed was stale") {
		t.Errorf("said %q", s.notes)
	}
	audit, err := os.ReadFile(s.path + ".audit.jsonl")
	must(t, err)
	for _, fact := range []string{`"action":"break"`, `"actor":{"name":"next","kind":"holder"}`, `"owner":"crashed"`, `"conditions":[{"name":"the expiry and the grace period have passed`} {
		if !strings.Contains(string(audit), fact) {
			t.Errorf("%s does not say %s", audit, fact)
		}
	}
	if strings.Contains(string(audit), "of crashed") {
		t.Errorf("it contains the token: %s", audit)
	}
}

// A break that cannot be audited does not happen.
func TestNoBreakWithoutRecord(t *testing.T) {
	s := newScene(t)
	s.write(s.foreign("crashed", time.Hour))
	must(t, os.Mkdir(s.path+".audit.jsonl", 0o755))
	if err := s.lease("next").Acquire(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "audit line cannot be written") {
		t.Errorf("got %v", err)
	}
	if s.read().Owner != "crashed" {
		t.Error("it was broken")
	}
}

// shows: LE-7 LE-35 LE-36 LE-41
func TestRenewExtends(t *testing.T) {
	s := newScene(t)
	l := s.holds("tidy_up")
	before := s.read()
	s.clock.pass(20 * time.Minute)
	must(t, l.Phase(t.Context(), "docs hygiene"))
	p := s.read()
	if p.ExpiresAt.Sub(before.ExpiresAt) != 20*time.Minute || p.RenewedAt.Sub(before.RenewedAt) != 20*time.Minute {
		t.Errorf("renewed to %+v from %+v", p, before)
	}
	if p.Token != before.Token || p.CreatedAt != before.CreatedAt {
		t.Errorf("more than the times changed: %+v", p)
	}
	info, err := lease.Inspect(s.path, s.options(""))
	must(t, err)
	if len(info.Holders) != 1 || info.Holders[0].Renewals != 1 || info.Holders[0].Phase != "docs hygiene" {
		t.Errorf("shown as %+v", info)
	}
	if m := l.Metrics(); m.Renewals != 1 || m.AcquiredIn <= 0 || m.Attempts != 1 {
		t.Errorf("metrics are %+v", m)
	}
	// It would have expired without the renewal.
	s.clock.pass(15 * time.Minute)
	if err := s.lease("next").Acquire(t.Context(), 0); lockkeeper.CodeOf(err) != lockkeeper.CodeTimeout {
		t.Errorf("got %v", err)
	}
	s.release(l)
	s.isFree()
}

// shows: LE-8 LE-35 LE-36 GP-36
func TestRenewRefusesWhatIsNotItsOwn(t *testing.T) {
	for name, c := range map[string]struct {
		steal       func(*scene)
		lost, freed string // expected in the errors of Renew and the note of Release; empty means no note
	}{
		"stolen": {func(s *scene) { s.write(s.foreign("thief", 0)) }, "held by thief (pid 4711), since 2", "its file now belongs to thief and was not changed"},
		"gone":   {func(s *scene) { must(s.t, os.Remove(s.path)) }, "its file is gone", "was released, but its file was already gone"},
		"malformed": {func(s *scene) { s.put([]byte("?")) }, "its file is malformed (invalid character",
			"was released, but its file is now malformed (invalid character"},
		"no directory": {func(s *scene) { must(s.t, os.RemoveAll(filepath.Dir(s.path))) }, "its file is gone", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			l := s.holds("tidy_up")
			c.steal(s)
			before, _ := os.ReadFile(s.path)
			err := l.Renew(t.Context())
			var lost *lease.LostError
			if !errors.As(err, &lost) || lockkeeper.CodeOf(err) != lockkeeper.CodeNotHeld {
				t.Fatalf("got %v", err)
			}
			if !strings.Contains(err.Error(), c.lost) || name == "stolen" && lost.Now.Owner != "thief" {
				t.Errorf("it says %v", err)
			}
			if done, err := l.Release(t.Context()); done || err != nil {
				t.Errorf("release: %v, %v", done, err)
			}
			if told := strings.Join(s.notes, "\n"); !strings.Contains(told, c.freed) || (told == "") != (c.freed == "") {
				t.Errorf("told at the release: %q", told)
			}
			if after, _ := os.ReadFile(s.path); string(after) != string(before) {
				t.Errorf("the file became %s", after)
			}
		})
	}
}

// shows: LE-13 LE-36
func TestZeroTTL(t *testing.T) {
	s := newScene(t)
	opt := s.options("short")
	opt.TTL = 0
	l := lease.New(s.path, opt)
	must(t, l.Acquire(t.Context(), 0))
	if p := s.read(); p.ExpiresAt != p.CreatedAt {
		t.Errorf("it lasts from %s to %s", p.CreatedAt, p.ExpiresAt)
	}
	if err := s.lease("next").Acquire(t.Context(), 0); lockkeeper.CodeOf(err) != lockkeeper.CodeTimeout {
		t.Fatalf("within the grace: %v", err)
	}
	must(t, l.Renew(t.Context()))
	s.clock.pass(2 * time.Minute)
	s.release(s.holds("next"))
}

// A holder that was suspended past its expiry notices and does not affect the next holder.
//
// shows: LE-8 GP-37
func TestLateHolder(t *testing.T) {
	s := newScene(t)
	late := s.holds("late")
	s.clock.pass(time.Hour)
	next := s.holds("next")
	var lost *lease.LostError
	if err := late.Renew(t.Context()); !errors.As(err, &lost) || lost.Now.Owner != "next" {
		t.Errorf("got %v", err)
	}
	if done, err := late.Release(t.Context()); done || err != nil {
		t.Errorf("release: %v, %v", done, err)
	}
	must(t, next.Renew(t.Context()))
	s.release(next)
}

// Another process can continue with the token.
func TestResume(t *testing.T) {
	s := newScene(t)
	token := s.holds("tidy_up").Token()
	opt := s.options("")
	opt.TTL = -1 // as it was
	for range 2 {
		l := lease.Resume(s.path, token, opt)
		s.clock.pass(10 * time.Minute)
		must(t, l.Renew(t.Context()))
		if p := s.read(); p.Owner != "tidy_up" || p.ExpiresAt.Sub(p.RenewedAt) < 30*time.Minute {
			t.Errorf("renewed to %+v", p)
		}
		must(t, os.Remove(filepath.Join(filepath.Dir(s.path), ".tidy.lock.guard"))) // the file alone is proof enough
	}
	s.release(lease.Resume(s.path, token, opt))
}

func TestWrongOptions(t *testing.T) {
	s := newScene(t)
	for name, change := range map[string]func(*lease.Options){
		"owner": func(o *lease.Options) { o.Owner = "" },
		"ttl":   func(o *lease.Options) { o.TTL = -1 },
		"grace": func(o *lease.Options) { o.Grace = -1 },
	} {
		opt := s.options("x")
		change(&opt)
		if err := lease.New(s.path, opt).Acquire(t.Context(), 0); lockkeeper.CodeOf(err) != lockkeeper.CodeInput || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, path := range []string{"", "/", ".", "..", s.path + "/"} {
		if err := lease.New(path, s.options("x")).Acquire(t.Context(), 0); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("%q: %v", path, err)
		}
	}
	l := s.holds("x")
	if err := l.Acquire(t.Context(), 0); lockkeeper.CodeOf(err) != lockkeeper.CodeRefused {
		t.Errorf("twice: %v", err)
	}
	s.release(l)
	if err := l.Renew(t.Context()); lockkeeper.CodeOf(err) != lockkeeper.CodeRefused {
		t.Errorf("renewed without being held: %v", err)
	}
}
