package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/rescue"
)

// Rescued is what is kept on the rescue shelf, oldest first.
func (a *App) Rescued(ctx context.Context) ([]rescue.Entry, error) {
	g, err := a.Gate()
	if err != nil {
		return nil, err
	}
	return g.Rescue().List(ctx)
}

// LandRescued lands what an entry of the rescue shelf wanted, under a grant that
// was taken for it, and drops the entry. It must meet what was there when it was
// kept, unless ontoCurrent says that anything may be there.
func (a *App) LandRescued(ctx context.Context, grant *lockkeeper.Grant, e rescue.Entry, ontoCurrent bool) (*lockkeeper.Landing, error) {
	g, err := a.Gate()
	if err != nil {
		return nil, err
	}
	shelf := g.Rescue()
	change := gate.Change{Path: e.Path, Delete: e.Delete}
	if e.Mode != 0 && !e.Delete {
		change.Mode = &e.Mode
	}
	if !ontoCurrent {
		change.Base = &e.Base
	}
	if e.Sum != "" && !e.Delete {
		if err := checkRescued(shelf, e); err != nil {
			return nil, err
		}
		change.Body = func() (io.ReadCloser, error) { return shelf.Content(e.ID) }
	}
	l, err := g.Commit(ctx, grant, []gate.Change{change})
	if err != nil {
		return nil, errors.Join(err, a.dropCopies(ctx, shelf, grant.ID))
	}
	return l, shelf.Drop(e.ID)
}

// checkRescued holds content against its hash.
func checkRescued(shelf *rescue.Shelf, e rescue.Entry) error {
	f, err := shelf.Content(e.ID)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != e.Sum {
		return &lockkeeper.InputError{Field: "rescue id", Value: e.ID, Reason: "its content was changed since it was kept", Next: "lockkeeper rescue show " + e.ID}
	}
	return nil
}

// dropCopies drops what the gate kept of a write that comes from the shelf and
// was refused again: the shelf has it already.
func (a *App) dropCopies(ctx context.Context, shelf *rescue.Shelf, grantID string) error {
	list, err := shelf.List(context.WithoutCancel(ctx))
	for _, e := range list {
		if e.GrantID == grantID {
			err = errors.Join(err, shelf.Drop(e.ID))
		}
	}
	return err
}
