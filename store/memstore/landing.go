package memstore

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// landings holds the landings of a space. Callers only get copies.
type landings struct {
	all      []*lockkeeper.Landing // landings by rising number
	open     map[uint64]*lockkeeper.Landing
	byCommit map[string]*lockkeeper.Landing
	byPath   map[string][]pathChange // changes by rising number
}

type pathChange struct {
	*lockkeeper.Landing
	n int
}

func bySeq(a, b *lockkeeper.Landing) int { return cmp.Compare(a.Seq, b.Seq) }

func (s *landings) find(seq uint64) *lockkeeper.Landing {
	i, found := slices.BinarySearchFunc(s.all, seq, func(l *lockkeeper.Landing, seq uint64) int { return cmp.Compare(l.Seq, seq) })
	if !found {
		return nil
	}
	return s.all[i]
}

// candidates returns the landings that a query can select, by rising number.
func (s *landings) candidates(q store.LandingQuery) (some []*lockkeeper.Landing) {
	switch {
	case q.Seq != 0:
		if l := s.find(q.Seq); l != nil {
			some = append(some, l)
		}
	case q.Commit != "":
		if l := s.byCommit[q.Commit]; l != nil {
			some = append(some, l)
		}
	case q.Open:
		some = slices.SortedFunc(maps.Values(s.open), bySeq)
	case q.Path != "":
		for _, v := range s.byPath[q.Path] {
			some = append(some, v.Landing)
		}
	default:
		some = s.all
	}
	return some
}

// add refuses a landing whose number or commit is known, or that changes a path twice.
func (s *landings) add(l *lockkeeper.Landing) error {
	if last := len(s.all) - 1; last >= 0 && s.all[last].Seq >= l.Seq || s.byCommit[l.Commit] != nil {
		return fmt.Errorf("landing %d of commit %s is not new", l.Seq, l.Commit)
	}
	for n, a := range l.Changes {
		before := s.byPath[a.Path]
		if last := len(before) - 1; last >= 0 && before[last].Landing == l {
			s.unlink(l)
			return fmt.Errorf("landing %d changes %s twice", l.Seq, a.Path)
		}
		s.byPath[a.Path] = append(before, pathChange{l, n})
	}
	s.all = append(s.all, l)
	s.byCommit[l.Commit] = l
	s.move(l, l.State)
	return nil
}

func (s *landings) unlink(l *lockkeeper.Landing) {
	for _, a := range l.Changes {
		rest := slices.DeleteFunc(s.byPath[a.Path], func(v pathChange) bool { return v.Landing == l })
		if len(rest) == 0 {
			delete(s.byPath, a.Path)
		} else {
			s.byPath[a.Path] = rest
		}
	}
}

// forget drops the landings that the function goes selects.
func (s *landings) forget(goes func(*lockkeeper.Landing) bool) {
	s.all = slices.DeleteFunc(s.all, func(l *lockkeeper.Landing) bool {
		if !goes(l) {
			return false
		}
		s.unlink(l)
		delete(s.byCommit, l.Commit)
		delete(s.open, l.Seq)
		return true
	})
}

func (s *landings) move(l *lockkeeper.Landing, to lockkeeper.LandingState) {
	l.State = to
	if to == lockkeeper.Decided {
		s.open[l.Seq] = l
	} else {
		delete(s.open, l.Seq)
	}
}

func (s *landings) prune(before time.Time) {
	s.forget(func(l *lockkeeper.Landing) bool { return l.At.Before(before) && l.State != lockkeeper.Decided })
}

func (t *tx) Landings(q store.LandingQuery) (out []*lockkeeper.Landing, err error) {
	some := t.landings.candidates(q)
	for i := range some {
		l := some[i]
		if q.Latest {
			l = some[len(some)-1-i]
		}
		if !q.Selects(l) {
			continue
		}
		out = append(out, l.Clone())
		if len(out) == q.Limit {
			break
		}
	}
	return out, nil
}

func (t *tx) Landed(grantID string, paths ...string) (map[string]store.LandedVersion, error) {
	left := map[string]store.LandedVersion{}
	for _, path := range paths {
		for _, v := range slices.Backward(t.landings.byPath[path]) {
			if v.State != lockkeeper.Undone && (grantID == "" || grantID == v.GrantID) {
				left[path] = store.LandedVersion{Seq: v.Seq, Version: v.Changes[v.n].New}
				break
			}
		}
	}
	return left, nil
}

func (t *tx) InsertLanding(l *lockkeeper.Landing) error {
	own := l.Clone()
	if err := t.landings.add(own); err != nil {
		return err
	}
	t.undo = append(t.undo, undo{kind: undoOther, other: func() {
		t.landings.forget(func(l *lockkeeper.Landing) bool { return l == own })
	}})
	return nil
}

func (t *tx) TakeLanding(e store.TakenLanding) error {
	l := t.landings.find(e.Seq)
	if l == nil || l.State != lockkeeper.Decided {
		return nil
	}
	before := l.Taker
	t.undo = append(t.undo, undo{kind: undoOther, other: func() { l.Taker = before }})
	l.Taker = e.Taker
	return nil
}

func (t *tx) EndLanding(e store.TakenLanding, state lockkeeper.LandingState) error {
	l := t.landings.find(e.Seq)
	if l == nil || l.State != lockkeeper.Decided || l.Taker != e.Taker {
		return nil
	}
	t.undo = append(t.undo, undo{kind: undoOther, other: func() { t.landings.move(l, lockkeeper.Decided) }})
	t.landings.move(l, state)
	return nil
}
