package lease_test

import (
	"os"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/compat/lease"
)

// blocked checks that the lease file cannot be acquired now.
func (s *scene) blocked(why string) {
	s.t.Helper()
	if err := s.lease("next").Acquire(s.t.Context(), 0); lockkeeper.CodeOf(err) != lockkeeper.CodeTimeout {
		s.t.Fatalf("%s: %v", why, err)
	}
}

// A step of the wall clock neither frees a Lockkeeper file nor extends it.
//
// shows: GP-37 CF-8
func TestClockSteps(t *testing.T) {
	for name, step := range map[string]time.Duration{"forward": 24 * time.Hour, "back": -24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			l := s.holds("tidy_up")
			s.clock.set(step)
			s.blocked("after the step")
			s.clock.pass(31*time.Minute + 59*time.Second)
			s.blocked("a second before the grace is over")
			must(t, l.Renew(t.Context()))
			s.clock.pass(32*time.Minute - time.Second)
			s.blocked("renewed")
			s.clock.pass(2 * time.Second)
			s.release(s.holds("next"))
		})
	}
}

// A step of the wall clock frees no foreign file that was seen before it.
//
// shows: GP-37
func TestClockStepsBesideForeignLease(t *testing.T) {
	s := newScene(t)
	s.write(s.foreign("python", time.Minute))
	s.blocked("seen")
	s.clock.set(24 * time.Hour)
	s.blocked("after the step")
	s.clock.set(-48 * time.Hour)
	s.clock.pass(31*time.Minute - time.Second)
	s.blocked("a second before the grace is over")
	s.clock.pass(2 * time.Second)
	s.release(s.holds("next"))
}

// A renewed foreign file is judged again.
func TestForeignLeaseIsRenewed(t *testing.T) {
	s := newScene(t)
	s.write(s.foreign("python", 20*time.Minute))
	s.blocked("seen")
	s.clock.pass(10 * time.Minute)
	s.write(s.foreign("python", 0))
	s.blocked("renewed")
	s.clock.pass(31 * time.Minute)
	s.blocked("within the grace")
	s.clock.pass(time.Minute)
	s.release(s.holds("next"))
}

// Neither sleep nor a reboot of the host frees a file before it expires by both clocks.
//
// shows: GP-37
func TestBoots(t *testing.T) {
	s := newScene(t)
	s.holds("tidy_up")
	s.clock.set(8 * time.Hour) // asleep: the monotonic clock stopped
	s.blocked("after a sleep")
	s.clock.start("another boot", 0) // its clock is 8 hours ahead, but the file is new by the clock of the disk
	s.blocked("after a start")
	s.age(31 * time.Minute)
	s.blocked("not old enough")
	s.age(33 * time.Minute)
	s.release(s.holds("next"))
}

// A PID that is gone or reused neither frees a file nor keeps it.
//
// shows: LE-5 GP-37
func TestProcessesDoNotCount(t *testing.T) {
	s := newScene(t)
	gone, self := s.foreign("gone", 0), s.foreign("reused", 33*time.Minute)
	gone.PID, self.PID = 1<<22+1, os.Getpid() // greater than any PID
	s.write(gone)
	s.blocked("its process is gone")
	s.write(self)
	s.release(s.holds("next"))
}

// The default clock is the system's.
func TestSystemClock(t *testing.T) {
	s := newScene(t)
	opt := s.options("tidy_up")
	opt.Clock = nil
	l := lease.New(s.path, opt)
	must(t, l.Acquire(t.Context(), 0))
	must(t, l.Renew(t.Context()))
	if at := s.read().RenewedAt; time.Since(at) < 0 || time.Since(at) > time.Minute {
		t.Errorf("renewed at %s", at)
	}
	s.release(l)
}
