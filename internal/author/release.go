package author

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/lock"
)

// release gives some resources of a claim back, or all of it. A name is no proof, and
// so an agent that gives a person's frees nothing of theirs.
func (au *Author) release(ctx context.Context, by Instance, s Standing, given []string, done *Unclaimed) error {
	switch {
	case s.command: // which keeps the token, and whose work it covers
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

// shrink replaces a claim by one on a part of its resources, in one transaction: at no
// moment can somebody else get that part.
func (au *Author) shrink(ctx context.Context, s Standing, rest []string) error {
	token, err := au.app.Tokens.Get(s.Grant)
	if err != nil {
		return err
	}
	if _, err := au.app.Locks.Renew(ctx, s.Grant, token); err != nil { // it is ours to change
		return err
	}
	things, err := au.things(rest, s.Mode)
	if err != nil {
		return err
	}
	var held *lock.Held
	err = au.app.Locks.Within(ctx, func(act *lock.Act) error {
		rec, err := act.Tx().Get(s.Grant)
		if err != nil {
			return err
		}
		if rec == nil || rec.Process != nil && rec.Process.Group != 0 {
			return &lockkeeper.RefusedError{Act: "giving back a part of the claim of " + s.Instance, Reason: "a command runs under it", Next: "give back all of it, or end the command"}
		}
		meta := map[string]string{}
		for key, value := range rec.Metadata {
			meta[key] = value
		}
		meta[claimKey] = listed(rest)
		if freed, err := act.Free(s.Grant, lockkeeper.Event{Kind: lockkeeper.EventReleased, Reason: "a part of the claim was given back"}); err != nil || freed != lock.FreedNow {
			return errors.Join(err, notNow(s, freed))
		}
		var found []lockkeeper.Overlap
		held, found, err = act.Try(lockkeeper.Request{Holder: rec.Holder, Policy: rec.Policy, Locks: locksOf(things), Process: rec.Process, Metadata: meta})
		if err == nil && len(found) > 0 {
			err = &lockkeeper.RefusedError{Act: "giving back a part of the claim of " + s.Instance,
				Reason: fmt.Sprintf("%s waits in line for what would be kept, and would get it", found[0].Record.Holder), Next: "lockkeeper unclaim " + strings.Join(s.Resources, " ")}
		}
		return err
	})
	if err != nil {
		return err
	}
	g := au.app.Locks.Handle(held)
	return errors.Join(au.app.Tokens.Put(ctx, g.ID, g.Token), au.app.Tokens.Drop(s.Grant))
}

func notNow(s Standing, freed lock.Freed) error {
	if freed == lock.Unsettled {
		return &lockkeeper.RefusedError{Act: "giving back a part of the claim of " + s.Instance, Reason: "changes are being landed under it", Next: "try again"}
	}
	return &lockkeeper.NotHeldError{GrantID: s.Grant, Reason: "it ended meanwhile", Next: "lockkeeper claim status"}
}

// things are resources by the names that claims have.
func (au *Author) things(names []string, mode lockkeeper.Mode) (list []thing, err error) {
	for _, name := range names {
		t, err := au.resolve(name, mode, au.fromRoot)
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, nil
}
