package lease_test

import (
	"os"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/lease"
)

// blocked holds that nobody gets the lease now.
func (s *scene) blocked(why string) {
	s.t.Helper()
	if err := s.lease("next").Acquire(s.t.Context(), 0); lockkeeper.CodeOf(err) != lockkeeper.CodeTimeout {
		s.t.Fatalf("%s: %v", why, err)
	}
}

// A step of the wall clock frees nothing of ours, and keeps nothing longer than it is
// to last.
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

// Of others, a step frees nothing that one of ours had seen before.
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

// What it renewed is judged anew.
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

// A host that sleeps frees nothing; nor does one that was started again before the
// lease was over, by whichever clock.
//
// shows: GP-37
func TestBoots(t *testing.T) {
	s := newScene(t)
	s.holds("tidy_up")
	s.clock.set(8 * time.Hour) // asleep: the boot's clock stood still
	s.blocked("after a sleep")
	s.clock.start("another boot", 0) // its clock is 8 hours ahead, and the file is new by the clock of the disk
	s.blocked("after a start")
	s.age(31 * time.Minute)
	s.blocked("not old enough")
	s.age(33 * time.Minute)
	s.release(s.holds("next"))
}

// A process that is gone, or whose number is another's by now, frees nothing and keeps
// nothing.
//
// shows: LE-5 GP-37
func TestProcessesDoNotCount(t *testing.T) {
	s := newScene(t)
	gone, self := s.foreign("gone", 0), s.foreign("reused", 33*time.Minute)
	gone.PID, self.PID = 1<<22+1, os.Getpid() // more than there are
	s.write(gone)
	s.blocked("its process is gone")
	s.write(self)
	s.release(s.holds("next"))
}

// The system's own clock, at work.
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
