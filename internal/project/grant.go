package project

import (
	"context"
	"errors"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// Hold acquires a grant for the lifetime of this process. It waits if wait is positive. The
// token stays in this process, so no other process can release the grant. If this machine's
// copy of a file is outdated, Hold acquires nothing. A store that cannot be reached for some time is
// tried again while it waits.
func (a *Project) Hold(ctx context.Context, req lockkeeper.Request, wait time.Duration) (*lock.Grant, error) {
	began := time.Now()
	check := func(locks []lockkeeper.Lock) error {
		return store.Retry(ctx, wait-time.Since(began), func() error { return a.CheckCopy(ctx, locks) })
	}
	if wait != 0 { // if the copy is behind, a wait is useless
		if err := check(req.Locks); err != nil {
			return nil, err
		}
	}
	take := a.Locks.TryAcquire
	if wait != 0 {
		take = func(ctx context.Context, req lockkeeper.Request) (*lock.Grant, error) {
			return a.Locks.Acquire(ctx, req, wait)
		}
	}
	g, err := take(ctx, req)
	if err != nil {
		return nil, err
	}
	if err := check(g.Locks); err != nil { // another landing may have happened since
		return nil, errors.Join(err, g.Release(context.WithoutCancel(ctx)))
	}
	return g, nil
}

// Acquire acquires a grant as Hold does, and stores its token for this user. If it cannot store the
// token, it releases the grant, because no process could release it later.
func (a *Project) Acquire(ctx context.Context, req lockkeeper.Request, wait time.Duration) (*lock.Grant, error) {
	g, err := a.Hold(ctx, req, wait)
	if err != nil {
		return nil, err
	}
	if err := a.Tokens.Put(ctx, g.ID, g.Token); err != nil {
		return nil, errors.Join(err, g.Release(context.WithoutCancel(ctx)))
	}
	return g, nil
}

// ShareOperation lets the command that this process runs under a grant use the grant at the
// gate. The policy of the grant must hold locks for one operation. The returned function ends
// that.
func (a *Project) ShareOperation(ctx context.Context, g *lock.Grant) (end func() error, err error) {
	policy, err := a.Locks.Policy(g.Policy)
	if err != nil || !policy.Operation {
		return func() error { return nil }, err
	}
	return a.Tokens.Share(ctx, g.ID, g.Token)
}

// Resolved resolves the files and directories in locks from the root. Nodes and trees are
// names and stay as they are.
func (a *Project) Resolved(locks []lockkeeper.Lock) ([]lockkeeper.Lock, error) {
	list := make([]lockkeeper.Lock, len(locks))
	for i, l := range locks {
		if list[i] = l; l.Level() > 0 {
			continue
		}
		path := l.Path
		if l.Kind == lockkeeper.Dir {
			path += "/"
		}
		var err error
		if list[i], err = a.Root.Resolve("", path, l.Mode); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// shortestID is how many characters of a grant's id must at least be given.
const shortestID = 4

// GrantID returns the id of the live grant or waiting request that a text names: its id, or the start of the id
// if no other one starts so. A whole id is returned as it is, because the grant may have ended.
func (a *Project) GrantID(ctx context.Context, text string) (string, error) {
	if isUUID(text) {
		return text, nil
	}
	if err := CheckGrantName(text); err != nil {
		return "", err
	}
	entries, err := a.Locks.Requests(ctx)
	if err != nil {
		return "", err
	}
	var found []string
	for _, e := range entries {
		if strings.HasPrefix(e.ID, text) {
			found = append(found, e.ID)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", &lockkeeper.NotHeldError{GrantID: text, Reason: "no grant that is held has an id that starts so", Next: "lockkeeper status"}
	}
	return "", &lockkeeper.InputError{Field: "grant", Value: text, Reason: "ambiguous: " + strings.Join(found, ", "), Next: "give more characters of the id"}
}

// ReleasedID returns the same as GrantID for a release. A text that names no grant is returned as it is, because its
// release changes nothing.
func (a *Project) ReleasedID(ctx context.Context, text string) (string, error) {
	id, err := a.GrantID(ctx, text)
	if lockkeeper.CodeOf(err) == lockkeeper.CodeNotHeld || CheckGrantName(text) != nil {
		return text, nil
	}
	return id, err
}

// CheckGrantName refuses a text that is neither the id of a grant nor the start of one.
func CheckGrantName(text string) error {
	if len(text) >= shortestID && len(text) < 36 && strings.Trim(text, "0123456789abcdef-") == "" {
		return nil
	}
	return CheckGrantID(text)
}

// Release releases a grant of this user. It returns false for an id that is unknown or was
// released before.
func (a *Project) Release(ctx context.Context, id string) (bool, error) {
	if CheckGrantID(id) != nil {
		return false, nil
	}
	token, err := a.Tokens.Get(id)
	if err != nil {
		return false, err
	}
	released, err := a.Locks.Release(ctx, id, token)
	if err != nil {
		return false, err
	}
	return released, a.Tokens.Drop(id)
}
