package author

import (
	"context"
	"errors"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
)

// A Request asks for a claim.
type Request struct {
	By     Instance
	Names  []string // names of resources, or paths
	Mode   lockkeeper.Mode
	Reason string

	// Override lists the grants that may be overridden if they are the only conflicts.
	// Person is who decided that.
	Override []string
	Person   lockkeeper.Actor

	// Worker is the process whose end releases the claim. If nil, the claim stays until it
	// is released.
	Worker *lockkeeper.Process
}

// A Result is the result of a Request. The claim was made if it has no Conflicts.
type Result struct {
	Grant     *lock.Grant // nil if this session had already claimed everything
	Names     []string    // the newly claimed resources
	Already   []string    // resources this session had already claimed; renewed
	Conflicts []Conflict
	Overrode  []Overridden
	Cleaned   []GrantStatus // claims released because their holders are gone
	Notes     []Note
}

// An Overridden is a claim that was overridden.
type Overridden struct {
	GrantStatus
	Kept []string `json:"kept,omitempty"` // paths of uncommitted files that were copied to the rescue shelf
}

// A Conflict is one resource that cannot be claimed because of one grant.
type Conflict struct {
	Resource string `json:"resource"`
	GrantStatus
}

// Claim claims all the requested resources or none.
func (au *Author) Claim(ctx context.Context, w Request) (*Result, error) {
	asked, err := au.resolveAll(w.Names, w.Mode, au.app.Resolve)
	if err != nil {
		return nil, err
	}
	if len(asked) == 0 {
		return nil, &lockkeeper.InputError{Field: "resources", Reason: "at least one is required", Next: "lockkeeper claim NAME, with a name of the table or a path"}
	}
	a := &Result{}
	a.Notes, err = au.sync(ctx, func(t *syncPass) error { return t.claim(ctx, w, asked, a) })
	if err != nil && a.Grant != nil { // foreign tools cannot see the claim
		err = errors.Join(err, au.release(context.WithoutCancel(ctx), a.Grant))
		a.Grant = nil
	}
	return a, err
}

func (au *Author) release(ctx context.Context, g *lock.Grant) error {
	return errors.Join(g.Release(ctx), au.app.Tokens.Drop(g.ID))
}

// claim makes a claim while the guard of the locks file is held.
func (t *syncPass) claim(ctx context.Context, w Request, asked []target, a *Result) error {
	held, err := t.au.statuses(ctx)
	if err != nil {
		return err
	}
	if held, err = t.cleanUp(ctx, held, a); err != nil {
		return err
	}
	if asked, err = t.au.renewHeld(ctx, w, asked, held, a); err != nil || len(asked) == 0 {
		return err
	}
	err = t.au.acquire(ctx, w, asked, a)
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
	if err = t.au.acquire(ctx, w, asked, a); errors.As(err, &blocked) { // another request was waiting for the lock
		if held, err = t.au.statuses(ctx); err == nil {
			a.Conflicts = conflictsOf(asked, blocked.Conflicts, held)
		}
	} else {
		a.Conflicts = nil
	}
	return err
}

// renewHeld renews the resources that the session has already claimed and returns the others.
func (au *Author) renewHeld(ctx context.Context, w Request, asked []target, held []GrantStatus, a *Result) (rest []target, err error) {
	for _, th := range asked {
		i := slices.IndexFunc(held, func(s GrantStatus) bool {
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

// renew renews the lease of a claim. A claim held for a command has no stored token: the
// command renews it.
func (au *Author) renew(ctx context.Context, s GrantStatus) error {
	token, err := au.app.Tokens.Get(s.Grant)
	if err != nil || token == "" {
		return err
	}
	_, err = au.app.Locks.Renew(ctx, s.Grant, token)
	return err
}

func (au *Author) acquire(ctx context.Context, w Request, asked []target, a *Result) error {
	req := lockkeeper.Request{Holder: w.By.ID, Policy: w.By.policy(), Locks: locksOf(asked), Process: w.By.Process,
		Metadata: map[string]string{claimKey: encodeNames(namesOf(asked)), sessionKey: w.By.session()}}
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

// conflictsOf lists the conflicts of each target, in the order of the request.
func conflictsOf(asked []target, found []lockkeeper.ConflictInfo, held []GrantStatus) (list []Conflict) {
	for _, th := range asked {
		for _, c := range found {
			in := slices.ContainsFunc(th.locks, func(l lockkeeper.Lock) bool { return l.Path == c.Path })
			known := slices.ContainsFunc(list, func(o Conflict) bool { return o.Resource == th.name && o.Grant == c.GrantID })
			if !in || known {
				continue
			}
			i := slices.IndexFunc(held, func(s GrantStatus) bool { return s.Grant == c.GrantID })
			if i < 0 { // the request is waiting, or was granted just now
				list = append(list, Conflict{th.name, GrantStatus{Grant: c.GrantID, Resources: []string{c.BlockingPath}, Instance: c.Holder,
					Mode: c.BlockingMode, Since: c.AcquiredAt, Seen: c.AcquiredAt, State: Working, Minutes: int(time.Since(c.AcquiredAt).Minutes())}})
				continue
			}
			list = append(list, Conflict{th.name, held[i]})
		}
	}
	return list
}

// cleanAfter is how long a holder must be gone before its claims are released.
const cleanAfter = time.Hour

// cleanUp releases claims whose holders are gone for cleanAfter and returns the others.
func (t *syncPass) cleanUp(ctx context.Context, held []GrantStatus, a *Result) (rest []GrantStatus, err error) {
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

// dropEntry removes the entry of a foreign claim that was released here from the file.
func (t *syncPass) dropEntry(s GrantStatus) {
	if s.Foreign {
		t.drop[s.entry.Lock()] = true
	}
}

// recover releases a claim whose holder is gone, unless it was renewed meanwhile.
func (au *Author) recover(ctx context.Context, s GrantStatus) error {
	return au.app.Locks.Update(ctx, func(act *lock.Tx) error {
		rec, err := act.Get(s.Grant)
		if err != nil || rec == nil || rec.HeartbeatAt.After(s.Seen) && !s.Foreign {
			return err
		}
		_, err = act.Free(s.Grant, lockkeeper.Event{Kind: lockkeeper.EventRecovered, Actor: lockkeeper.Actor{Name: "lockkeeper", Kind: lockkeeper.ActorSystem},
			Reason: "the holder of the claim is gone",
			Conditions: []lockkeeper.Condition{
				{Name: "no activity for " + cleanAfter.String(), Held: true, Fact: "last activity at " + s.Seen.UTC().Format(time.RFC3339)},
				{Name: "process gone", Held: s.Process == lockkeeper.ProcessDead.String(), Fact: s.Process},
			}})
		return err
	})
}
