package lease_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/durable/durabletest"
	"lockkeeper/internal/compat/lease"
)

// holderActs are the operations during which a holder may crash.
var holderActs = map[string]func(*scene, lease.Options) error{
	"acquire": func(s *scene, opt lease.Options) error { return lease.New(s.path, opt).Acquire(s.t.Context(), 0) },
	"break": func(s *scene, opt lease.Options) error {
		s.write(s.foreign("crashed", time.Hour))
		return lease.New(s.path, opt).Acquire(s.t.Context(), 0)
	},
	"break malformed": func(s *scene, opt lease.Options) error {
		s.put([]byte("{"))
		s.age(time.Minute)
		return lease.New(s.path, opt).Acquire(s.t.Context(), 0)
	},
	"renew": func(s *scene, opt lease.Options) error {
		return lease.Resume(s.path, s.holds("dies").Token(), opt).Renew(s.t.Context())
	},
	"release": func(s *scene, opt lease.Options) error {
		_, err := lease.Resume(s.path, s.holds("dies").Token(), opt).Release(s.t.Context())
		return err
	},
	"join": func(s *scene, opt lease.Options) error {
		s.reads("reader")
		opt.Shared = true
		return lease.New(s.path, opt).Acquire(s.t.Context(), 0)
	},
	"leave": func(s *scene, opt lease.Options) error {
		s.reads("reader")
		_, err := lease.Resume(s.path, s.reads("dies").Token(), opt).Release(s.t.Context())
		return err
	},
}

// A holder that crashes at any operation leaves a complete lease file or none, and blocks
// others at most until it expires.
//
// shows: LE-5 LE-12 LE-25 GP-35
func TestDiesAnywhere(t *testing.T) {
	for name, act := range holderActs {
		t.Run(name, func(t *testing.T) {
			for k, died := 0, true; died; k++ {
				s := newScene(t)
				disk := &durabletest.FaultyDisk{}
				disk.CrashAt(k)
				opt := s.options("dies")
				opt.Disk = disk
				err := act(s, opt)
				died = errors.Is(err, durabletest.ErrCrashed)
				if err != nil && !died {
					t.Fatalf("at %d: %v", k, err)
				}
				if _, err := os.Stat(s.path); err == nil {
					if name != "break malformed" {
						s.read() // complete
					}
					s.age(33 * time.Minute)
				}
				s.clock.pass(32*time.Minute + time.Second)
				next := s.lease("next")
				if err := next.Acquire(t.Context(), 0); err != nil {
					t.Fatalf("at %d: next holder: %v", k, err)
				}
				must(t, next.Renew(t.Context()))
				s.release(next)
				s.onlyLease()
			}
		})
	}
}

// An operation that fails at any point leaves the lease file as it was or free, and can be
// retried.
//
// shows: LE-21 CF-11
func TestFailsAnywhere(t *testing.T) {
	for name, act := range holderActs {
		t.Run(name, func(t *testing.T) {
			for k, failed := 0, true; failed; k++ {
				s := newScene(t)
				disk := &durabletest.FaultyDisk{}
				disk.FailAt(k, unix.EIO)
				opt := s.options("unlucky")
				opt.Disk = disk
				err := act(s, opt)
				failed = errors.Is(err, unix.EIO)
				if err != nil && !failed {
					t.Fatalf("at %d: %v", k, err)
				}
				err = s.lease("next").Acquire(t.Context(), 0)
				if err != nil && lockkeeper.CodeOf(err) != lockkeeper.CodeTimeout && !(name == "break malformed") {
					t.Fatalf("at %d: next holder: %v", k, err)
				}
				if strings.HasPrefix(name, "break") || name == "acquire" {
					if got := s.read().Owner; failed && got == "unlucky" {
						t.Fatalf("at %d: the operation failed but holds the lease file", k)
					}
				}
				if name == "renew" && s.read().Owner != "dies" {
					t.Fatalf("at %d: the lease file belongs to %s", k, s.read().Owner)
				}
			}
		})
	}
}
