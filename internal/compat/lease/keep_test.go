package lease_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper/durable"
	"lockkeeper/internal/compat/lease"
)

// kept acquires a file that a keeper renews every few milliseconds.
func (s *scene) kept(change func(*lease.Options)) *lease.Lease {
	s.t.Helper()
	opt := s.options("tidy_up")
	opt.TTL, opt.Heartbeat, opt.Note = time.Minute, 5*time.Millisecond, nil
	if change != nil {
		change(&opt)
	}
	l := lease.New(s.path, opt)
	must(s.t, l.Acquire(s.t.Context(), 0))
	return l
}

// shows: LE-7 CF-10
func TestKeepRenews(t *testing.T) {
	s := newScene(t)
	l := s.kept(nil)
	held, stop := l.Keep(t.Context())
	for l.Metrics().Renewals < 3 {
		time.Sleep(time.Millisecond)
	}
	before := s.read()
	s.clock.pass(30 * time.Second)
	for s.read().ExpiresAt.Sub(before.ExpiresAt) < 30*time.Second {
		time.Sleep(time.Millisecond)
	}
	if held.Err() != nil {
		t.Errorf("lost: %v", context.Cause(held))
	}
	stop()
	if held.Err() == nil {
		t.Error("the context outlives the keeper")
	}
	s.release(l)
}

// A keeper that finds another holder's file cancels the work.
//
// shows: CF-11 LE-8
func TestKeepNotices(t *testing.T) {
	s := newScene(t)
	l := s.kept(nil)
	held, stop := l.Keep(t.Context())
	defer stop()
	text, err := json.Marshal(s.foreign("thief", 0)) // in one step, because the keeper may read it at any moment
	must(t, err)
	must(t, os.WriteFile(s.path+".thief", text, 0o644))
	must(t, os.Rename(s.path+".thief", s.path))
	<-held.Done()
	var lost *lease.LostError
	if !errors.As(context.Cause(held), &lost) || lost.Now.Owner != "thief" {
		t.Errorf("got %v", context.Cause(held))
	}
}

// A failing disk refuses writes while it is told to.
type failing struct {
	durable.OSDisk
	mu  sync.Mutex
	now bool
}

func (d *failing) set(now bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = now
}

// Create implements durable.Disk.
func (d *failing) Create(at *os.File, name string) (*os.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.now {
		return nil, unix.EIO
	}
	return d.OSDisk.Create(at, name)
}

// shows: LE-21 CF-11
func TestKeepTriesAgainAndGivesUp(t *testing.T) {
	s := newScene(t)
	disk := &failing{}
	synctest.Test(t, func(t *testing.T) {
		told := make(chan string, 1000)
		l := s.kept(func(opt *lease.Options) {
			opt.TTL, opt.Heartbeat, opt.Disk = 30*time.Minute, time.Minute, disk
			opt.Note = func(text string) { told <- text }
		})
		disk.set(true)
		held, stop := l.Keep(t.Context())
		defer stop()
		<-told
		disk.set(false)
		before := l.Metrics().Renewals
		for l.Metrics().Renewals == before { // it recovered
			time.Sleep(time.Second)
		}
		disk.set(true)
		since := time.Now()
		<-held.Done()
		if err := context.Cause(held); !errors.Is(err, unix.EIO) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(since); took < 19*time.Minute || took > 21*time.Minute {
			t.Errorf("it gave up after %s", took)
		}
	})
}
