package author

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lockkeeper"
)

// override releases the conflicting claims after copying their uncommitted work. The lock
// engine refuses an agent and records the refusal.
func (t *syncPass) override(ctx context.Context, w Request, a *Result) error {
	for _, c := range a.Conflicts {
		if slices.ContainsFunc(a.Overrode, func(o Overridden) bool { return o.Grant == c.Grant }) {
			continue
		}
		reason := fmt.Sprintf("%s claims %s", w.By.ID, c.Resource)
		lost := Overridden{GrantStatus: c.GrantStatus}
		if w.By.Agent == "" {
			var err error
			if lost.Kept, err = t.au.keep(ctx, c.GrantStatus, reason); err != nil {
				return err
			}
		}
		if err := t.end(ctx, c.GrantStatus, w.By.actor(w.Person), reason); err != nil {
			return err
		}
		a.Overrode = append(a.Overrode, lost)
	}
	return nil
}

// end releases a claim of another holder.
func (t *syncPass) end(ctx context.Context, s GrantStatus, by lockkeeper.Actor, reason string) error {
	err := t.au.app.Locks.ForceRelease(ctx, s.Grant, by, reason)
	if lockkeeper.CodeOf(err) == lockkeeper.CodeNotHeld { // already released
		err = nil
	}
	if err == nil {
		t.dropEntry(s)
	}
	return err
}

// A Cleared is the result of Clear.
type Cleared struct {
	Freed []GrantStatus
	Kept  []GrantStatus // could not be released; the error says why
	Notes []Note
}

// Clear releases the listed claims of their holders. With all, it also removes foreign
// entries without a grant, so that the file is empty afterwards.
func (au *Author) Clear(ctx context.Context, list []GrantStatus, by lockkeeper.Actor, all bool) (*Cleared, error) {
	done := &Cleared{}
	var failed error
	notes, err := au.sync(ctx, func(t *syncPass) error {
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
			t.dropRefused()
		}
		return nil
	})
	done.Notes = notes
	return done, errors.Join(err, failed)
}

// dropRefused removes foreign entries that got no grant from the file.
func (t *syncPass) dropRefused() {
	for _, n := range t.notes {
		if n.Kind != Corrupted {
			t.drop[n.Entry.Lock()] = true
		}
	}
	t.notes = slices.DeleteFunc(t.notes, func(n Note) bool { return n.Kind != Corrupted })
}

// An Unclaimed is the result of Unclaim.
type Unclaimed struct {
	Freed     []string      // the released resources
	Kept      []string      // of a claim that ends with its running command
	Others    []GrantStatus // named, but held by another session, or by a foreign tool with the same ID
	Unclaimed []string      // named, but not claimed
	Notes     []Note
}

// Unclaim releases the named resources of this session, or all of them.
func (au *Author) Unclaim(ctx context.Context, by Instance, names []string) (*Unclaimed, error) {
	asked, err := au.resolveAll(names, lockkeeper.Write)
	if err != nil {
		return nil, err
	}
	done := &Unclaimed{}
	done.Notes, err = au.sync(ctx, func(t *syncPass) error {
		held, err := au.statuses(ctx)
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

func (au *Author) unclaimAll(ctx context.Context, by Instance, held []GrantStatus, done *Unclaimed) error {
	for _, s := range held {
		switch {
		case !s.IsClaim:
		case by.Has(s):
			if err := au.releasePart(ctx, by, s, s.Resources, done); err != nil {
				return err
			}
		case s.Foreign && s.entry.Instance == by.ID: // a foreign tool with the same ID
			done.Others = append(done.Others, s)
		}
	}
	return nil
}

func (au *Author) unclaim(ctx context.Context, by Instance, names []string, held []GrantStatus, done *Unclaimed) error {
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
		if err := au.releasePart(ctx, by, s, given, done); err != nil {
			return err
		}
	}
	done.Unclaimed = left
	return nil
}
