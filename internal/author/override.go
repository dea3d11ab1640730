package author

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lockkeeper"
)

// override takes away what is in the way of a claim, after keeping a copy of what is
// written there and not committed. An agent is refused by the engine, which puts that
// on record.
func (t *turn) override(ctx context.Context, w Want, a *Answer) error {
	for _, c := range a.Conflicts {
		if slices.ContainsFunc(a.Overrode, func(o Overridden) bool { return o.Grant == c.Grant }) {
			continue
		}
		reason := fmt.Sprintf("%s claims %s", w.By.ID, c.Resource)
		lost := Overridden{Standing: c.Standing}
		if w.By.Agent == "" {
			var err error
			if lost.Kept, err = t.au.keep(ctx, c.Standing, reason); err != nil {
				return err
			}
		}
		if err := t.end(ctx, c.Standing, w.By.actor(w.Person), reason); err != nil {
			return err
		}
		a.Overrode = append(a.Overrode, lost)
	}
	return nil
}

// end takes a claim away from its holder.
func (t *turn) end(ctx context.Context, s Standing, by lockkeeper.Actor, reason string) error {
	err := t.au.app.Locks.ForceRelease(ctx, s.Grant, by, reason)
	if lockkeeper.CodeOf(err) == lockkeeper.CodeNotHeld { // it has ended by itself
		err = nil
	}
	if err == nil {
		t.dropEntry(s)
	}
	return err
}

// Cleared is what came of clearing claims.
type Cleared struct {
	Freed []Standing
	Kept  []Standing // that could not be freed; the error says why
	Notes []Note
}

// Clear takes claims away from their holders, in one turn; with all of them given the
// file is empty afterwards.
func (au *Author) Clear(ctx context.Context, list []Standing, by lockkeeper.Actor, all bool) (*Cleared, error) {
	done := &Cleared{}
	var failed error
	notes, err := au.sync(ctx, func(t *turn) error {
		for _, s := range list {
			reason := "claims that are gone were cleared"
			if all {
				reason = "all claims were cleared"
			}
			_, err := au.keep(ctx, s, reason)
			if err == nil {
				err = t.end(ctx, s, by, reason)
			}
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s of %s: %w", strings.Join(s.Resources, ", "), s.Instance, err))
				done.Kept = append(done.Kept, s)
				continue
			}
			done.Freed = append(done.Freed, s)
		}
		if all && failed == nil {
			t.dropMet()
		}
		return nil
	})
	done.Notes = notes
	return done, errors.Join(err, failed)
}

// dropMet takes the entries of foreign claims out of the file that got no grant.
func (t *turn) dropMet() {
	for _, n := range t.notes {
		if n.Kind != Corrupted {
			t.drop[n.Entry.Lock()] = true
		}
	}
	t.notes = slices.DeleteFunc(t.notes, func(n Note) bool { return n.Kind != Corrupted })
}

// Unclaimed is what came of giving claims back.
type Unclaimed struct {
	Freed  []string   // the resources
	Kept   []string   // of a claim that ends with the command that runs under it
	Others []Standing // what was named and somebody else has, or another tool of this session's name
	Not    []string   // what was named and nobody has claimed
	Notes  []Note
}

// Unclaim gives back what this session has claimed: the named resources, or all of
// them.
func (au *Author) Unclaim(ctx context.Context, by Instance, names []string) (*Unclaimed, error) {
	asked, err := au.resolveAll(names, lockkeeper.Write)
	if err != nil {
		return nil, err
	}
	done := &Unclaimed{}
	done.Notes, err = au.sync(ctx, func(t *turn) error {
		held, err := au.standings(ctx)
		if err != nil {
			return err
		}
		if len(asked) == 0 {
			return au.unclaimAll(ctx, by, held, done)
		}
		return au.unclaim(ctx, by, namesOf(asked), held, done)
	})
	return done, err
}

func (au *Author) unclaimAll(ctx context.Context, by Instance, held []Standing, done *Unclaimed) error {
	for _, s := range held {
		switch {
		case !s.IsClaim:
		case by.Has(s):
			if err := au.release(ctx, by, s, s.Resources, done); err != nil {
				return err
			}
		case s.Foreign && s.entry.Instance == by.ID: // the tool's of that name, not ours
			done.Others = append(done.Others, s)
		}
	}
	return nil
}

func (au *Author) unclaim(ctx context.Context, by Instance, names []string, held []Standing, done *Unclaimed) error {
	left := slices.Clone(names)
	for _, s := range held {
		given := slices.DeleteFunc(slices.Clone(s.Resources), func(name string) bool { return !slices.Contains(names, name) })
		if !s.IsClaim || len(given) == 0 {
			continue
		}
		left = slices.DeleteFunc(left, func(name string) bool { return slices.Contains(given, name) })
		if !by.Has(s) {
			done.Others = append(done.Others, s)
			continue
		}
		if err := au.release(ctx, by, s, given, done); err != nil {
			return err
		}
	}
	done.Not = left
	return nil
}
