package author

import (
	"context"
	"errors"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
)

// Want is a claim that is asked for.
type Want struct {
	By     Instance
	Names  []string // of resources, or paths
	Mode   lockkeeper.Mode
	Reason string

	// Override lists the grants that may be taken away for it, if nothing else is in
	// its way, and Person is who said so.
	Override []string
	Person   lockkeeper.Actor

	// Worker is the process for whose life the claim is held; nil: it stays until it is
	// given back.
	Worker *lockkeeper.Process
}

// Answer is what came of a claim. Without Conflicts it was made.
type Answer struct {
	Grant     *lock.Grant // nil: all of it was claimed by this session before
	Names     []string    // of what was taken, as they are called
	Already   []string    // what this session had claimed before, and renewed now
	Conflicts []Conflict
	Overrode  []Overridden
	Cleaned   []Standing // claims of those who are gone, which were in nobody's hands any more
	Notes     []Note
}

// Overridden is a claim that was taken away.
type Overridden struct {
	Standing
	Kept []string `json:"kept,omitempty"` // paths: what was not committed there, of which lockkeeper rescue has a copy
}

// Conflict is one resource that cannot be claimed because of one grant.
type Conflict struct {
	Resource string `json:"resource"`
	Standing
}

// Claim claims resources, all of them or none.
func (au *Author) Claim(ctx context.Context, w Want) (*Answer, error) {
	asked, err := au.resolveAll(w.Names, w.Mode)
	if err != nil {
		return nil, err
	}
	if len(asked) == 0 {
		return nil, &lockkeeper.InputError{Field: "resources", Reason: "none is named", Next: "lockkeeper claim NAME, with a name of the table or a path"}
	}
	a := &Answer{}
	a.Notes, err = au.sync(ctx, func(t *turn) error { return t.claim(ctx, w, asked, a) })
	if err != nil && a.Grant != nil { // it cannot be shown to those who know the file alone
		err = errors.Join(err, au.giveBack(context.WithoutCancel(ctx), a.Grant))
		a.Grant = nil
	}
	return a, err
}

func (au *Author) giveBack(ctx context.Context, g *lock.Grant) error {
	return errors.Join(g.Release(ctx), au.app.Tokens.Drop(g.ID))
}

// claim makes a claim while the guard of the file is held.
func (t *turn) claim(ctx context.Context, w Want, asked []thing, a *Answer) error {
	held, err := t.au.standings(ctx)
	if err != nil {
		return err
	}
	if held, err = t.cleanUp(ctx, held, a); err != nil {
		return err
	}
	if asked, err = t.au.again(ctx, w, asked, held, a); err != nil || len(asked) == 0 {
		return err
	}
	err = t.au.take(ctx, w, asked, a)
	var blocked *lockkeeper.BlockedError
	if !errors.As(err, &blocked) {
		return err
	}
	a.Conflicts = conflictsOf(asked, blocked.Conflicts, held)
	if blocked.Truncated || slices.ContainsFunc(a.Conflicts, func(c Conflict) bool { return !slices.Contains(w.Override, c.Grant) }) {
		return nil
	}
	if err := t.override(ctx, w, a); err != nil {
		return err
	}
	if err = t.au.take(ctx, w, asked, a); errors.As(err, &blocked) { // somebody stood in line for it
		if held, err = t.au.standings(ctx); err == nil {
			a.Conflicts = conflictsOf(asked, blocked.Conflicts, held)
		}
	} else {
		a.Conflicts = nil
	}
	return err
}

// again renews what the session has claimed already, and returns the rest.
func (au *Author) again(ctx context.Context, w Want, asked []thing, held []Standing, a *Answer) (rest []thing, err error) {
	for _, th := range asked {
		i := slices.IndexFunc(held, func(s Standing) bool {
			return w.By.Has(s) && s.Mode >= th.mode() && slices.Contains(s.Resources, th.name)
		})
		if i < 0 {
			rest = append(rest, th)
			continue
		}
		a.Already = append(a.Already, th.name)
		if err := au.renew(ctx, held[i]); err != nil {
			return nil, err
		}
	}
	return rest, nil
}

// renew gives a claim a new lease. Whoever runs a command under one renews it
// themselves, and keeps its token.
func (au *Author) renew(ctx context.Context, s Standing) error {
	token, err := au.app.Tokens.Get(s.Grant)
	if err != nil || token == "" {
		return err
	}
	_, err = au.app.Locks.Renew(ctx, s.Grant, token)
	return err
}

// take asks the engine for a claim.
func (au *Author) take(ctx context.Context, w Want, asked []thing, a *Answer) error {
	req := lockkeeper.Request{Holder: w.By.ID, Policy: w.By.policy(), Locks: locksOf(asked), Process: w.By.Process,
		Metadata: map[string]string{claimKey: listed(namesOf(asked)), sessionKey: w.By.session()}}
	if w.By.Who != "" {
		req.Metadata[whoKey] = w.By.Who
	}
	if w.Reason != "" {
		req.Metadata["reason"] = w.Reason
	}
	way := au.app.Acquire
	if w.Worker != nil {
		req.Process, way = w.Worker, au.app.Hold
	}
	g, err := way(ctx, req, 0)
	if err != nil {
		return err
	}
	a.Grant, a.Names = g, namesOf(asked)
	return nil
}

// conflictsOf says of each resource that was asked for, in its order, who is in its
// way.
func conflictsOf(asked []thing, found []lockkeeper.ConflictInfo, held []Standing) (list []Conflict) {
	for _, th := range asked {
		for _, c := range found {
			in := slices.ContainsFunc(th.locks, func(l lockkeeper.Lock) bool { return l.Path == c.Path })
			known := slices.ContainsFunc(list, func(o Conflict) bool { return o.Resource == th.name && o.Grant == c.GrantID })
			if !in || known {
				continue
			}
			i := slices.IndexFunc(held, func(s Standing) bool { return s.Grant == c.GrantID })
			if i < 0 { // it waits in line, or came just now
				list = append(list, Conflict{th.name, Standing{Grant: c.GrantID, Resources: []string{c.BlockingPath}, Instance: c.Holder,
					Mode: c.BlockingMode, Since: c.AcquiredAt, Seen: c.AcquiredAt, State: Working, Minutes: int(time.Since(c.AcquiredAt).Minutes())}})
				continue
			}
			list = append(list, Conflict{th.name, held[i]})
		}
	}
	return list
}

// cleanAfter is how long somebody who is gone is waited for.
const cleanAfter = time.Hour

// cleanUp frees the claims of those who are gone for an hour, and returns the others.
func (t *turn) cleanUp(ctx context.Context, held []Standing, a *Answer) (rest []Standing, err error) {
	for _, s := range held {
		if !s.MayOverride() || time.Since(s.Seen) < cleanAfter {
			rest = append(rest, s)
			continue
		}
		if err := t.au.recover(ctx, s); err != nil {
			return nil, err
		}
		t.dropEntry(s)
		a.Cleaned = append(a.Cleaned, s)
	}
	return rest, nil
}

// dropEntry takes the entry of a foreign claim that was ended here out of the file.
func (t *turn) dropEntry(s Standing) {
	if s.Foreign {
		t.drop[s.entry.Lock()] = true
	}
}

// recover frees a claim of somebody who is gone, unless there was a sign meanwhile.
func (au *Author) recover(ctx context.Context, s Standing) error {
	return au.app.Locks.Within(ctx, func(act *lock.Act) error {
		rec, err := act.Tx().Get(s.Grant)
		if err != nil || rec == nil || rec.HeartbeatAt.After(s.Seen) && !s.Foreign {
			return err
		}
		_, err = act.Free(s.Grant, lockkeeper.Event{Kind: lockkeeper.EventRecovered, Actor: lockkeeper.Actor{Name: "lockkeeper", Kind: lockkeeper.ActorSystem},
			Reason: "nobody is behind the claim any more",
			Conditions: []lockkeeper.Condition{
				{Name: "no sign of life for " + cleanAfter.String(), Held: true, Fact: "the last one was at " + s.Seen.UTC().Format(time.RFC3339)},
				{Name: "process gone", Held: s.Process == lockkeeper.LifeDead.String(), Fact: s.Process},
			}})
		return err
	})
}
