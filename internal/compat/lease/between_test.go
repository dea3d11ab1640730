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
	"lockkeeper/internal/compat/lease"
)

// An interloper changes the lease file as a foreign tool would, between two operations of
// this package.
type interloper struct {
	s    *scene
	acts map[int]func() // by the number of the operation they precede
	ops  int
}

func (o *interloper) disk() *durabletest.FaultyDisk {
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

// end performs the remaining acts now.
func (o *interloper) end() {
	for _, k := range slices.Sorted(maps.Keys(o.acts)) {
		o.acts[k]()
	}
	o.acts = nil
}

// steal returns the act of a foreign tool that judged an earlier file to be stale.
func (s *scene) steal(thief string) func() {
	return func() {
		if err := os.Remove(s.path); err != nil && !errors.Is(err, os.ErrNotExist) {
			s.t.Fatal(err)
		}
		s.createForeign(s.foreign(thief, 0))
	}
}

// createForeign creates the file exclusively and then writes into it.
func (s *scene) createForeign(p payload) (created bool) {
	f, err := os.OpenFile(s.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, os.ErrExist) {
		return false
	}
	must(s.t, err)
	must(s.t, json.NewEncoder(f).Encode(p))
	must(s.t, f.Close())
	return true
}

// replace returns the act of a foreign holder that renews after its check.
func (s *scene) replace(p payload) func() {
	return func() {
		text, err := json.Marshal(p)
		must(s.t, err)
		must(s.t, os.WriteFile(s.path+".tmp", text, 0o644))
		must(s.t, os.Rename(s.path+".tmp", s.path))
	}
}

// everyMoment repeats a scene with an interloper's act before each operation, and with two
// acts before each pair of operations.
func everyMoment(t *testing.T, first, second func(*scene) func(), play func(t *testing.T, s *scene, o *interloper)) {
	total := 0
	run := func(k, j int) {
		t.Run(fmt.Sprintf("%d and %d", k, j), func(t *testing.T) {
			s := newScene(t)
			o := &interloper{s: s, acts: map[int]func(){k: first(s)}}
			if second != nil {
				o.acts[j] = second(s)
			}
			play(t, s, o)
			total = max(total, o.ops)
		})
	}
	const never = 1 << 20
	run(never, never+1) // counts the operations
	for k := 0; k < total; k++ {
		run(k, never)
		for j := k + 1; j < total && second != nil; j++ {
			run(k, j)
		}
	}
	t.Logf("%d operations", total)
}

// with returns the options of a holder that the interloper disturbs.
func (o *interloper) with(owner string) lease.Options {
	opt := o.s.options(owner)
	opt.Disk = o.disk()
	return opt
}

// A file that is stolen at any moment of its renewal stays stolen, and the holder notices
// at the next renewal.
//
// shows: LE-8 LE-12 GP-36
func TestStolenWhileItIsRenewed(t *testing.T) {
	steal := func(thief string) func(*scene) func() {
		return func(s *scene) func() { return s.steal(thief) }
	}
	everyMoment(t, steal("thief"), steal("second thief"), func(t *testing.T, s *scene, o *interloper) {
		token := s.holds("tidy_up").Token()
		l := lease.Resume(s.path, token, o.with("tidy_up"))
		var lost *lease.LostError
		if err := l.Renew(t.Context()); err != nil && !errors.As(err, &lost) {
			t.Fatal(err)
		}
		o.end()
		if s.read().Token == token {
			t.Error("the thief's file was overwritten")
		}
		if err := l.Renew(t.Context()); !errors.As(err, &lost) {
			t.Errorf("the next renewal: %v", err)
		}
		if done, err := l.Release(t.Context()); done || err != nil {
			t.Errorf("release: %v, %v", done, err)
		}
		if s.read().Token == token {
			t.Error("the stolen lease file was restored")
		}
		s.onlyLease()
	})
}

// onlyLease checks that no temporary file is left beside the lease file.
func (s *scene) onlyLease() {
	s.t.Helper()
	for _, end := range []string{".new", ".old"} {
		if _, err := os.Lstat(filepath.Join(filepath.Dir(s.path), ".tidy.lock"+end)); err == nil {
			s.t.Errorf("a file %s is left", end)
		}
	}
}

// A file that is stolen at any moment of its release is not removed.
//
// shows: GP-37
func TestStolenWhileItIsReleased(t *testing.T) {
	everyMoment(t, func(s *scene) func() { return s.steal("thief") }, nil, func(t *testing.T, s *scene, o *interloper) {
		l := lease.Resume(s.path, s.holds("tidy_up").Token(), o.with("tidy_up"))
		if _, err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		o.end()
		if s.read().Owner != "thief" {
			t.Error("the thief's file was removed")
		}
		s.onlyLease()
	})
}

// A holder that renews at any moment while its stale file is broken either keeps it, or
// was too late and the new holder notices.
//
// shows: LE-5 GP-34
func TestRenewedWhileItIsBroken(t *testing.T) {
	everyMoment(t, func(s *scene) func() { return s.replace(s.foreign("python", 0)) }, nil, func(t *testing.T, s *scene, o *interloper) {
		s.write(s.foreign("python", time.Hour))
		l := lease.New(s.path, o.with("next"))
		err := l.Acquire(t.Context(), 0)
		if err != nil && lockkeeper.CodeOf(err) != lockkeeper.CodeTimeout {
			t.Fatal(err)
		}
		o.end()
		if s.read().Owner != "python" {
			t.Error("a current lease file was broken")
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

// A creator that writes into its empty file at any moment while the file is broken keeps
// it, unless it was already replaced.
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
	}, nil, func(t *testing.T, s *scene, o *interloper) {
		exchanged = false
		l := lease.New(s.path, o.with("next"))
		err := l.Acquire(t.Context(), 0)
		if err != nil && lockkeeper.CodeOf(err) != lockkeeper.CodeTimeout {
			t.Fatal(err)
		}
		o.end()
		if owner := s.read().Owner; !exchanged && owner != "python" {
			t.Error("a current lease file was broken")
		}
		s.onlyLease()
	})
}

// If a foreign tool comes at any moment of an acquisition, exactly one of the two gets the
// file.
//
// shows: LE-3 GP-35
func TestTakenByTwo(t *testing.T) {
	theirs := false
	come := func(s *scene) func() {
		theirs = false
		return func() { theirs = s.createForeign(s.foreign("python", 0)) }
	}
	everyMoment(t, come, nil, func(t *testing.T, s *scene, o *interloper) {
		l := lease.New(s.path, o.with("next"))
		err := l.Acquire(t.Context(), 0)
		if err != nil && lockkeeper.CodeOf(err) != lockkeeper.CodeTimeout {
			t.Fatal(err)
		}
		o.end()
		if got, want := s.read().Owner == "next", err == nil; got != want {
			t.Errorf("the file belongs to %s, but Acquire returned %v", s.read().Owner, err)
		}
		if theirs && err == nil {
			t.Error("both got it")
		}
		s.onlyLease()
	})
}

// Whatever foreign tools do to the file, no second Lockkeeper holder gets it before the
// first one releases it or expires.
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
			s.blocked("not released by the first holder")
			info, err := lease.Inspect(s.path, s.options(""))
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
			s.blocked("not yet expired")
			s.clock.pass(2 * time.Second)
			s.release(s.holds("third"))
		})
	}
}
