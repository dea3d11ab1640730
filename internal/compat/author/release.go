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
	if _, err := au.app.Locks.Renew(ctx, s.Grant, token); err != nil { // proves that the caller holds it
		return err
	}
	targets, err := au.targets(rest, s.Mode)
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

// targets resolves the resource names of a claim.
func (au *Author) targets(names []string, mode lockkeeper.Mode) (list []target, err error) {
	for _, name := range names {
		t, err := au.resolve(name, mode, au.fromRoot)
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, nil
}
