package author

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// releasePart releases some or all resources of a claim. A name is not a proof: an agent
// that uses the ID of a person's session cannot release the person's claims.
func (au *Author) releasePart(ctx context.Context, by Instance, s GrantStatus, given []string, done *Unclaimed) error {
	switch {
	case s.command: // the command has the token, and its work depends on the claim
		done.Kept = append(done.Kept, given...)
		return nil
	case by.Agent != "" && s.Who != "":
		done.Others = append(done.Others, s)
		return nil
	}
	rest := slices.DeleteFunc(slices.Clone(s.Resources), func(name string) bool { return slices.Contains(given, name) })
	var err error
	if len(rest) == 0 {
		_, err = au.app.Release(ctx, s.Grant)
	} else {
		err = au.shrink(ctx, s, rest)
	}
	if err == nil {
		done.Freed = append(done.Freed, given...)
	}
	return err
}

// shrink replaces a claim by one on fewer resources in one transaction, so that no other
// holder can acquire the remaining ones in between.
func (au *Author) shrink(ctx context.Context, s GrantStatus, rest []string) error {
	token, err := au.app.Tokens.Get(s.Grant)
	if err != nil {
		return err
	}
	if _, err := au.app.Locks.Renew(ctx, s.Grant, token); err != nil { // Renew proves that the caller holds the claim
		return err
	}
	targets, err := au.resolveAll(rest, s.Mode, au.fromRoot)
	if err != nil {
		return err
	}
	var held *lock.PendingGrant
	err = au.app.Locks.Update(ctx, func(act *lock.Tx) error {
		rec, err := act.Get(s.Grant)
		if err != nil {
			return err
		}
		if rec == nil || rec.Process != nil && rec.Process.Group != 0 {
			return &lockkeeper.RefusedError{Act: "release of a part of the claim of " + s.Instance, Reason: "a command runs under it", Next: "release all of it, or stop the command"}
		}
		meta := map[string]string{}
		for key, value := range rec.Metadata {
			meta[key] = value
		}
		meta[claimKey] = encodeNames(rest)
		if freed, err := act.Free(s.Grant, lockkeeper.Event{Kind: lockkeeper.EventReleased, Reason: "a part of the claim was released"}); err != nil || freed != lock.FreedNow {
			return errors.Join(err, releaseError(s, freed))
		}
		var found []store.Overlap
		held, found, err = act.Try(lockkeeper.Request{Holder: rec.Holder, Policy: rec.Policy, Locks: locksOf(targets), Process: rec.Process, Metadata: meta})
		if err == nil && len(found) > 0 {
			err = &lockkeeper.RefusedError{Act: "release of a part of the claim of " + s.Instance,
				Reason: fmt.Sprintf("%s is waiting for the remaining part and would get it", found[0].Record.Holder), Next: "lockkeeper unclaim " + strings.Join(s.Resources, " ")}
		}
		return err
	})
	if err != nil {
		return err
	}
	g := au.app.Locks.Handle(held)
	return errors.Join(au.app.Tokens.Put(ctx, g.ID, g.Token), au.app.Tokens.Drop(s.Grant))
}

func releaseError(s GrantStatus, freed lock.Freed) error {
	if freed == lock.LandingOpen {
		return &lockkeeper.RefusedError{Act: "release of a part of the claim of " + s.Instance, Reason: "a landing under it is in progress", Next: "retry"}
	}
	return &lockkeeper.NotHeldError{GrantID: s.Grant, Reason: "it has ended", Next: "lockkeeper claim status"}
}

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

func (t *syncPass) end(ctx context.Context, s GrantStatus, by lockkeeper.Actor, reason string) error {
	err := t.au.app.Locks.ForceRelease(ctx, s.Grant, by, reason)
	if lockkeeper.CodeOf(err) == lockkeeper.CodeNotHeld { // the claim is released already
		err = nil
	}
	if err == nil {
		t.dropEntry(s)
	}
	return err
}

type Cleared struct {
	Freed []GrantStatus
	Kept  []GrantStatus // claims that could not be released; the error says why
}

// Clear releases the listed claims of their holders. With all, it also removes foreign
// entries without a grant, so that the file is empty afterwards.
func (au *Author) Clear(ctx context.Context, list []GrantStatus, by lockkeeper.Actor, all bool) (*Cleared, error) {
	done := &Cleared{}
	var failed error
	_, err := au.sync(ctx, func(t *syncPass) error {
		for _, s := range list {
			reason := "claims whose holder is gone were cleared"
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

type Unclaimed struct {
	Freed     []string      // the released resources
	Kept      []string      // resources of a claim that ends with its running command
	Others    []GrantStatus // named claims that another session holds, or a foreign tool with the same ID
	Unclaimed []string      // named resources that are not claimed
	Notes     []Note
}

// Unclaim releases the named resources of this session, or all of them.
func (au *Author) Unclaim(ctx context.Context, by Instance, names []string) (*Unclaimed, error) {
	asked, err := au.resolveAll(names, lockkeeper.Write, au.app.Resolve)
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
		case s.Foreign && s.entry.Instance == by.ID: // a claim of a foreign tool with the same ID
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
