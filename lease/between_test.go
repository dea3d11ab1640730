package lease_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/durable/durabletest"
	"lockkeeper/lease"
)

// others does something to the lease file as another tool would, between two
// operations of ours.
type others struct {
	s    *scene
	acts map[int]func() // before which operation
	ops  int
}

func (o *others) disk() *durabletest.FaultyDisk {
	disk := &durabletest.FaultyDisk{}
	disk.At = func(k int, _ durabletest.Op) {
		if o.acts == nil {
			return
		}
		o.ops = k + 1
		if act := o.acts[k]; act != nil {
			act()
			delete(o.acts, k)
		}
	}
	return disk
}

// end is the end of what others come between. What they were to do later, they do
// now.
func (o *others) end() {
	for _, k := range slices.Sorted(maps.Keys(o.acts)) {
		o.acts[k]()
	}
	o.acts = nil
}

// steal is a foreign breaker that had judged an earlier file.
func (s *scene) steal(thief string) func() {
	return func() {
		if err := os.Remove(s.path); err != nil && !errors.Is(err, os.ErrNotExist) {
			s.t.Fatal(err)
		}
		s.createForeign(s.foreign(thief, 0))
	}
}

// createForeign creates exclusively and then writes.
func (s *scene) createForeign(p payload) {
	f, err := os.OpenFile(s.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, os.ErrExist) {
		return
	}
	must(s.t, err)
	must(s.t, json.NewEncoder(f).Encode(p))
	must(s.t, f.Close())
}

// replace is a foreign holder that renews after its look.
func (s *scene) replace(p payload) func() {
	return func() {
		text, err := json.Marshal(p)
		must(s.t, err)
		must(s.t, os.WriteFile(s.path+".tmp", text, 0o644))
		must(s.t, os.Rename(s.path+".tmp", s.path))
	}
}

// everyMoment runs a scene again and again, with an act of others before each operation
// of ours in turn, and two of them before each pair.
func everyMoment(t *testing.T, first, second func(*scene) func(), play func(t *testing.T, s *scene, o *others)) {
	total := 0
	run := func(k, j int) {
		t.Run(fmt.Sprintf("%d and %d", k, j), func(t *testing.T) {
			s := newScene(t)
			o := &others{s: s, acts: map[int]func(){k: first(s)}}
			if second != nil {
				o.acts[j] = second(s)
			}
			play(t, s, o)
			total = max(total, o.ops)
		})
	}
	const never = 1 << 20
	run(never, never+1) // which tells how many there are at least
	for k := 0; k < total; k++ {
		run(k, never)
		for j := k + 1; j < total && second != nil; j++ {
			run(k, j)
		}
	}
	t.Logf("%d operations", total)
}

// with is a holder whose operations others come between.
func (o *others) with(owner string) lease.Options {
	opt := o.s.options(owner)
	opt.Disk = o.disk()
	return opt
}

// A lease that is stolen at any moment of its renewal stays stolen, and the holder
// knows at the next renewal at the latest.
//
// shows: LE-8 LE-12 GP-36
func TestStolenWhileItIsRenewed(t *testing.T) {
	steal := func(thief string) func(*scene) func() {
		return func(s *scene) func() { return s.steal(thief) }
	}
	everyMoment(t, steal("thief"), steal("second thief"), func(t *testing.T, s *scene, o *others) {
		token := s.holds("tidy_up").Token()
		l := lease.Resume(s.path, token, o.with("tidy_up"))
		var lost *lease.LostError
		if err := l.Renew(t.Context()); err != nil && !errors.As(err, &lost) {
			t.Fatal(err)
		}
		o.end()
		if s.read().Token == token {
			t.Error("the thief's lease was overwritten")
		}
		if err := l.Renew(t.Context()); !errors.As(err, &lost) {
			t.Errorf("the next renewal: %v", err)
		}
		if done, err := l.Release(t.Context()); done || err != nil {
			t.Errorf("release: %v, %v", done, err)
		}
		if s.read().Token == token {
			t.Error("it is back")
		}
		s.onlyLease()
	})
}

// onlyLease holds that nothing of ours lies about besides the lease file.
func (s *scene) onlyLease() {
	s.t.Helper()
	for _, end := range []string{".new", ".old"} {
		if _, err := os.Lstat(filepath.Join(filepath.Dir(s.path), ".tidy.lock"+end)); err == nil {
			s.t.Errorf("a file %s is left", end)
		}
	}
}

// A lease that is stolen at any moment of its release is not removed.
//
// shows: GP-37
func TestStolenWhileItIsReleased(t *testing.T) {
	everyMoment(t, func(s *scene) func() { return s.steal("thief") }, nil, func(t *testing.T, s *scene, o *others) {
		l := lease.Resume(s.path, s.holds("tidy_up").Token(), o.with("tidy_up"))
		if _, err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		o.end()
		if s.read().Owner != "thief" {
			t.Error("the thief's lease was removed")
		}
		s.onlyLease()
	})
}

// A holder that renews at any moment while its stale lease is broken either keeps it,
// or, if it was too late, is seen by ours.
//
// shows: LE-5 GP-34
func TestRenewedWhileItIsBroken(t *testing.T) {
	everyMoment(t, func(s *scene) func() { return s.replace(s.foreign("python", 0)) }, nil, func(t *testing.T, s *scene, o *others) {
		s.write(s.foreign("python", time.Hour))
		l := lease.New(s.path, o.with("next"))
		err := l.Acquire(t.Context(), 0)
		if err != nil && lockkeeper.CodeOf(err) != lockkeeper.CodeTimeout {
			t.Fatal(err)
		}
		o.end()
		if s.read().Owner != "python" {
			t.Error("a live lease was broken")
		}
		var lost *lease.LostError
		if err == nil {
			if err := l.Renew(t.Context()); !errors.As(err, &lost) {
				t.Errorf("the next renewal: %v", err)
			}
		}
		s.onlyLease()
	})
}

// A maker that writes, at any moment while its empty file is broken, into the file that
// it has open, keeps it, unless it was too late.
//
// shows: GP-35
func TestWrittenWhileItIsBroken(t *testing.T) {
	exchanged := false
	everyMoment(t, func(s *scene) func() {
		s.put(nil)
		s.age(time.Minute)
		f, err := os.OpenFile(s.path, os.O_WRONLY, 0)
		must(s.t, err)
		return func() {
			p := s.foreign("python", 0)
			must(s.t, json.NewEncoder(f).Encode(p))
			must(s.t, f.Close())
			if now, err := os.ReadFile(s.path); err == nil && len(now) > 0 {
				exchanged = s.read().Token != p.Token
			}
		}
	}, nil, func(t *testing.T, s *scene, o *others) {
		exchanged = false
		l := lease.New(s.path, o.with("next"))
		err := l.Acquire(t.Context(), 0)
		if err != nil && lockkeeper.CodeOf(err) != lockkeeper.CodeTimeout {
			t.Fatal(err)
		}
		o.end()
		if owner := s.read().Owner; !exchanged && owner != "python" {
			t.Error("a live lease was broken")
		}
		s.onlyLease()
	})
}

// Somebody else who comes at any moment while a free lease is taken gets it, or not:
// never both.
//
// shows: LE-3 GP-35
func TestTakenByTwo(t *testing.T) {
	everyMoment(t, func(s *scene) func() { return func() { s.createForeign(s.foreign("python", 0)) } }, nil, func(t *testing.T, s *scene, o *others) {
		l := lease.New(s.path, o.with("next"))
		err := l.Acquire(t.Context(), 0)
		if err != nil && lockkeeper.CodeOf(err) != lockkeeper.CodeTimeout {
			t.Fatal(err)
		}
		o.end()
		if got, want := s.read().Owner == "next", err == nil; got != want {
			t.Errorf("the file is of %s, and the answer %v", s.read().Owner, err)
		}
		s.onlyLease()
	})
}

// Whatever others do to the file of one of ours, no other one of ours gets the lease
// before that one has let go of it, or its time is past.
//
// shows: GP-34
func TestNeverTwoOfOurs(t *testing.T) {
	for name, act := range map[string]func(*scene){
		"removed": func(s *scene) { must(s.t, os.Remove(s.path)) },
		"stolen, then released": func(s *scene) {
			s.steal("thief")()
			must(s.t, os.Remove(s.path))
		},
		"stolen, then stale": func(s *scene) { s.write(s.foreign("thief", time.Hour)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			l := s.holds("first")
			act(s)
			s.blocked("the first one has not let go")
			info, err := lease.Look(s.path, s.options(""))
			must(t, err)
			if info.State != lease.Held || info.Holders[0].Owner != "first" {
				t.Errorf("shown as %+v", info)
			}
			if done, err := l.Release(t.Context()); done || err != nil {
				t.Errorf("release: %v, %v", done, err)
			}
			s.release(s.holds("second"))

			s.holds("crashed")
			act(s)
			s.clock.pass(32*time.Minute - time.Second)
			s.blocked("it may still live")
			s.clock.pass(2 * time.Second)
			s.release(s.holds("third"))
		})
	}
}
