package run_test

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockkeeper"
	"lockkeeper/store"
)

// covered fails the test if the recorded landings and their grants do not explain every changed
// byte.
func (s *scene) covered(before, after map[string]string) {
	s.t.Helper()
	for _, fault := range s.unexplained(before, after) {
		s.t.Error(fault)
	}
}

// unexplained replays the recorded events in order and returns the changes of the tree that they
// do not explain. Each landing needs a grant that holds write locks on its paths at that time.
// Its base must be the result of the previous landing. The tree must equal the results of the
// last landings, and no other file may differ.
func (s *scene) unexplained(before, after map[string]string) (faults []string) {
	s.t.Helper()
	fault := func(format string, facts ...any) { faults = append(faults, fmt.Sprintf(format, facts...)) }
	var events []lockkeeper.Event
	landings := map[uint64]*lockkeeper.Landing{}
	must(s.t, s.opt.Store.View(s.t.Context(), func(r store.Reader) (err error) {
		if events, err = r.Events(store.EventQuery{Limit: 1_000_000}); err != nil {
			return err
		}
		all, err := r.Landings(store.LandingQuery{})
		for _, l := range all {
			landings[l.Seq] = l
		}
		return err
	}))
	held := map[string][]lockkeeper.Lock{}
	left, modes := sums(before), map[string]os.FileMode{}
	for _, ev := range events {
		switch ev.Kind {
		case lockkeeper.EventAcquired, lockkeeper.EventExtended, lockkeeper.EventUpgraded:
			held[ev.GrantID] = append(held[ev.GrantID], ev.Locks...)
		case lockkeeper.EventReleased, lockkeeper.EventExpired, lockkeeper.EventRecovered, lockkeeper.EventForceReleased:
			delete(held, ev.GrantID)
		case lockkeeper.EventLanded:
			l := landings[ev.Seq]
			if l == nil || l.State == lockkeeper.Undone {
				fault("landing %d is not on record, or did not come to its end", ev.Seq)
				continue
			}
			for _, c := range l.Changes {
				if !slices.ContainsFunc(held[l.GrantID], func(has lockkeeper.Lock) bool { return has.Mode == lockkeeper.Write && has.Path == c.Path }) {
					fault("landing %d changed %s, which grant %s did not hold", l.Seq, c.Path, l.GrantID)
				}
				if left[c.Path] != c.Old.Sum {
					fault("landing %d found something in %s that no landing had left there", l.Seq, c.Path)
				}
				left[c.Path], modes[c.Path] = c.New.Sum, c.New.Mode
				if !c.New.Exists() {
					delete(left, c.Path)
					delete(modes, c.Path)
				}
			}
		}
	}
	now := sums(after)
	names := maps.Clone(left)
	maps.Copy(names, now)
	for _, path := range slices.Sorted(maps.Keys(names)) {
		if left[path] != now[path] {
			fault("%s is not what the last landing left there", path)
		}
	}
	for path, mode := range modes {
		info, err := os.Stat(filepath.Join(s.root, path))
		must(s.t, err)
		if info.Mode().Perm() != mode.Perm() {
			fault("%s has the permissions %s, and landed with %s", path, info.Mode().Perm(), mode.Perm())
		}
	}
	return faults
}

// readLocked returns the application paths read-locked by grants that hold no write lock on
// application code.
func (s *scene) readLocked() map[string]bool {
	s.t.Helper()
	paths := map[string]bool{}
	must(s.t, s.opt.Store.View(s.t.Context(), func(r store.Reader) error {
		events, err := r.Events(store.EventQuery{Limit: 1_000_000})
		for _, ev := range events {
			app := slices.DeleteFunc(slices.Clone(ev.Locks), func(l lockkeeper.Lock) bool { return !strings.HasPrefix(l.Path, "app/") })
			if ev.Kind != lockkeeper.EventAcquired || slices.ContainsFunc(app, func(l lockkeeper.Lock) bool { return l.Mode == lockkeeper.Write }) {
				continue
			}
			for _, l := range app {
				paths[l.Path] = true
			}
		}
		return err
	}))
	return paths
}

// sums returns the hashes of files, without the missing ones.
func sums(files map[string]string) map[string][32]byte {
	all := map[string][32]byte{}
	for path, text := range files {
		all[path] = sha256.Sum256([]byte(text))
	}
	return all
}

// The coverage check finds a changed byte that no landing explains, also in a file that landed.
func TestCoverageFindsUnexplainedChanges(t *testing.T) {
	s := newScene(t, "memory", "tasks")
	s.tasks(one)
	s.play(oneScript)
	before := s.files()
	s.run("all")
	s.covered(before, s.files())
	const landed, other = "app/models/one.rb", "config/routes.rb"
	for words, spoil := range map[string]func(before, after map[string]string){
		landed + " is not what the last": func(_, after map[string]string) { after[landed] += "x" },
		other + " is not what the last":  func(_, after map[string]string) { delete(after, other) },
		"new.rb is not what the last":    func(_, after map[string]string) { after["new.rb"] = "" },
		"that no landing had left there": func(before, _ map[string]string) { before[landed] = "x" },
	} {
		was, now := maps.Clone(before), s.files()
		spoil(was, now)
		if faults := s.unexplained(was, now); len(faults) != 1 || !strings.Contains(faults[0], words) {
			t.Errorf("%s: %q", words, faults)
		}
	}
}
