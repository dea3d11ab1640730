package lease_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/compat/lease"
)

func (s *scene) reader(owner string) *lease.Lease {
	opt := s.options(owner)
	opt.Shared = true
	return lease.New(s.path, opt)
}

// reads acquires the file for a reader.
func (s *scene) reads(owner string) *lease.Lease {
	s.t.Helper()
	l := s.reader(owner)
	must(s.t, l.Acquire(s.t.Context(), 0))
	return l
}

// shows: LE-40 CF-27
func TestReaders(t *testing.T) {
	s := newScene(t)
	first, second := s.reads("first"), s.reads("second")
	if p := s.read(); p.Owner != "read by first, second" || p.Token == first.Token() || p.Token == second.Token() {
		t.Errorf("others see %+v", p)
	}
	s.blocked("read by two")
	info, err := lease.Inspect(s.path, s.options(""))
	must(t, err)
	if !info.Shared || len(info.Holders) != 2 || info.State != lease.Held {
		t.Errorf("shown as %+v", info)
	}
	must(t, first.Renew(t.Context()))
	s.release(first)
	s.blocked("read by one")
	if owner := s.read().Owner; owner != "read by second" {
		t.Errorf("others see %q", owner)
	}
	s.release(second)
	s.isFree()

	writer := s.holds("writer")
	if err := s.reader("late").Acquire(t.Context(), 0); lockkeeper.CodeOf(err) != lockkeeper.CodeTimeout {
		t.Errorf("beside a writer: %v", err)
	}
	s.release(writer)
}

// A group lasts as long as its last reader, and a dead reader expires from it.
func TestReaderDies(t *testing.T) {
	s := newScene(t)
	s.reads("dies")
	s.clock.pass(20 * time.Minute)
	lives := s.reads("lives")
	s.clock.pass(13 * time.Minute)
	must(t, lives.Renew(t.Context()))
	if owner := s.read().Owner; owner != "read by lives" {
		t.Errorf("others see %q", owner)
	}
	s.blocked("read by one")
	s.release(lives)
	s.isFree()

	s.reads("dies")
	lives = s.reads("lives")
	s.release(lives)
	s.blocked("the dead reader has not expired")
	s.clock.pass(33 * time.Minute)
	s.release(s.holds("next"))
}

// A reader that was suspended past its expiry is no longer a member.
func TestReaderIsLate(t *testing.T) {
	s := newScene(t)
	late := s.reads("late")
	s.clock.pass(20 * time.Minute)
	s.reads("other")
	s.clock.pass(13 * time.Minute)
	s.reads("third") // drops expired readers
	var lost *lease.LostError
	if err := late.Renew(t.Context()); !errors.As(err, &lost) {
		t.Errorf("got %v", err)
	}
	if done, err := late.Release(t.Context()); done || err != nil {
		t.Errorf("release: %v, %v", done, err)
	}
	s.blocked("read by others")
}

// Foreign holders and readers exclude each other through the file alone.
//
// shows: LE-40
func TestReadersBesideForeign(t *testing.T) {
	s := newScene(t)
	s.write(s.foreign("python", 0))
	if err := s.reader("reader").Acquire(t.Context(), 0); lockkeeper.CodeOf(err) != lockkeeper.CodeTimeout || !strings.Contains(err.Error(), "python (pid 4711)") {
		t.Errorf("beside a foreign lease: %v", err)
	}
	s.write(s.foreign("python", time.Hour))
	readers := []*lease.Lease{s.reads("first"), s.reads("second")}
	s.steal("thief")()
	for _, r := range readers {
		var lost *lease.LostError
		if err := r.Renew(t.Context()); !errors.As(err, &lost) || lost.Now.Owner != "thief" {
			t.Errorf("got %v", err)
		}
		if done, err := r.Release(t.Context()); done || err != nil {
			t.Errorf("release: %v, %v", done, err)
		}
	}
	if s.read().Owner != "thief" {
		t.Error("the thief's lease was removed")
	}
}

// The guard has room for many readers.
func TestManyReaders(t *testing.T) {
	s := newScene(t)
	var readers []*lease.Lease
	for n := range 20 {
		readers = append(readers, s.reads(fmt.Sprintf("reader %d", n)))
	}
	for {
		opt := s.options(strings.Repeat("x", 4000))
		opt.Shared = true
		l := lease.New(s.path, opt)
		if err := l.Acquire(t.Context(), 0); err != nil {
			if !strings.Contains(err.Error(), "too many readers") {
				t.Errorf("one too many: %v", err)
			}
			break
		}
		readers = append(readers, l)
	}
	for _, r := range readers {
		must(t, r.Renew(t.Context()))
		s.release(r)
	}
	s.isFree()
}
