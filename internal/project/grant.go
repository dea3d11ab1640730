package project

import (
	"context"
	"errors"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
)

// Hold takes a grant, waiting for it when wait is positive, for as long as this
// process lives. Its token stays here: nobody else can release it. Where this
// machine's copy of a file is behind, nothing is taken.
func (a *Project) Hold(ctx context.Context, req lockkeeper.Request, wait time.Duration) (*lock.Grant, error) {
	if err := a.CheckCopy(ctx, req.Locks); err != nil { // before anybody waits for nothing
		return nil, err
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
	if err := a.CheckCopy(ctx, g.Locks); err != nil { // somebody may have landed until now
		return nil, errors.Join(err, g.Release(context.WithoutCancel(ctx)))
	}
	return g, nil
}

// Acquire takes a grant in the same way, and keeps its token for this user. When the token cannot be kept the grant is given back:
// nobody could release it later.
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

// Release gives a grant of this user back. An id that is unknown, or was
// released before, is harmless and answers false.
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
