package sidecar

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"lockkeeper"
)

// kinds returns the kinds of stored decisions. Each has <kind>.json, and its previous version
// in <kind>.previous.json.
func kinds() [2]string { return [2]string{Deferred, Rejected} }

// PastDecisions lists the items that earlier runs deferred and rejected. A malformed file, or one
// that is missing while its previous version exists, is a *MalformedError until a person repairs
// it. A malformed file is copied.
func (s *Store) PastDecisions(ctx context.Context) (entries []PastDecision, err error) {
	err = s.decisions().change(ctx, false, func(p *location) error {
		l, err := p.ledger(ctx)
		if err != nil {
			return err
		}
		for _, kind := range kinds() {
			for _, line := range l.wanted[kind] {
				entries = append(entries, line.PastDecision)
			}
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return entries, nil
}

// Record stores decisions. Each replaces the earlier one on the same item.
func (s *Store) Record(ctx context.Context, entries ...PastDecision) error {
	if len(entries) == 0 {
		return nil
	}
	lines := make([]line, len(entries))
	for i, e := range entries {
		var err error
		if lines[i], err = e.line(); err != nil {
			return err
		}
	}
	return s.edit(ctx, entries[0].By, func(l *ledger) error {
		for _, e := range lines {
			l.set(e)
		}
		return nil
	})
}

// Forget removes recorded decisions. It ignores missing ones. If one of them was changed since,
// it returns a *ChangedError and removes nothing.
func (s *Store) Forget(ctx context.Context, entries ...PastDecision) error {
	if len(entries) == 0 {
		return nil
	}
	return s.edit(ctx, entries[0].By, func(l *ledger) error {
		for _, e := range entries {
			kind, i, found := l.find(e.item())
			if !found {
				continue
			}
			is := l.wanted[kind][i]
			if is.Decision != e.Decision || !e.Timestamp.IsZero() && !is.Timestamp.Equal(e.Timestamp) {
				return &ChangedError{Path: l.p.folder.rel(kind + ".json"), Was: e.Decision, Is: is.Decision, By: is.By, At: is.Timestamp}
			}
			l.wanted[kind] = slices.Delete(l.wanted[kind], i, i+1)
		}
		return nil
	})
}

// Reenable marks a rejected item as re-enabled. An earlier mark stays.
func (s *Store) Reenable(ctx context.Context, controller, description, by string) error {
	return s.mark(ctx, controller, description, by, func(was *Mark) *Mark {
		return cmp.Or(was, &Mark{By: by, At: time.Now().Round(0).UTC()})
	})
}

// UndoReenable removes the mark of Reenable.
func (s *Store) UndoReenable(ctx context.Context, controller, description, by string) error {
	return s.mark(ctx, controller, description, by, func(*Mark) *Mark { return nil })
}

func (s *Store) mark(ctx context.Context, controller, description, by string, next func(was *Mark) *Mark) error {
	wanted := PastDecision{Controller: controller, Description: description}.item()
	return s.edit(ctx, by, func(l *ledger) error {
		kind, i, found := l.find(wanted)
		if !found || kind != Rejected {
			return &lockkeeper.InputError{Field: "item", Value: controller + ": " + description, Reason: "not rejected",
				Next: "lockkeeper decide list"}
		}
		e := l.wanted[kind][i].PastDecision
		was := e.Reenabled
		if e.Reenabled = next(was); e.Reenabled == was {
			return nil
		}
		marked, err := e.line()
		if err != nil {
			return err
		}
		l.set(marked)
		return nil
	})
}

// edit changes the decisions under the lock.
func (s *Store) edit(ctx context.Context, by string, change func(*ledger) error) error {
	return s.decisions().change(ctx, true, func(p *location) error {
		l, err := p.ledger(ctx)
		if err != nil {
			return err
		}
		if err := change(l); err != nil {
			return err
		}
		return l.save(ctx, About{By: by})
	})
}
