package app

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"time"

	"lockkeeper"
	"lockkeeper/internal/snapshot"
	"lockkeeper/rescue"
)

// Snapshots is where copies of uncommitted files are kept while commands of sessions run. It
// is on the disk of the tree, so that a reflink can be made.
func (a *App) Snapshots() *snapshot.Store {
	return snapshot.Open(a.Root.Dir(), filepath.Join(a.Root.Dir(), dirName, "snapshots"))
}

// orphaned is how long a snapshot of an unknown process stays open.
const orphaned = 24 * time.Hour

// RecoverSnapshots puts on the rescue shelf what was lost during commands whose end nobody
// compared: the session or its hook died, or there was no time left.
func (a *App) RecoverSnapshots(ctx context.Context) error {
	store := a.Snapshots()
	err := store.Recover(a.mayRun, func(snap *snapshot.Snapshot) error {
		changes, err := store.Changed(ctx, snap)
		for _, c := range changes {
			if _, err := a.KeepUncommitted(ctx, snap, c); err != nil {
				return err
			}
			if err := store.Without(snap, []snapshot.File{c.File}); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
		return store.Close(snap)
	})
	return errors.Join(err, store.Prune(time.Now().Add(-a.Config.Gate.Keep)))
}

// mayRun reports whether the command of a snapshot may still be under way.
func (a *App) mayRun(snap *snapshot.Snapshot) bool {
	if snap.Process != nil {
		switch a.Host.Life(*snap.Process) {
		case lockkeeper.LifeAlive:
			return true
		case lockkeeper.LifeDead:
			return false
		}
	}
	return time.Since(snap.At) < orphaned
}

// KeepUncommitted puts a file that was lost during the command of a snapshot on the rescue
// shelf, as it was before.
func (a *App) KeepUncommitted(ctx context.Context, snap *snapshot.Snapshot, c snapshot.Change) (rescue.Entry, error) {
	store, shelf := a.Snapshots(), a.Shelf()
	content, err := store.Content(c.File)
	if err != nil {
		return rescue.Entry{}, err
	}
	base, err := store.Present(c)
	if err != nil {
		return rescue.Entry{}, err
	}
	did := "overwritten"
	if c.Gone {
		did = "removed"
	}
	e := rescue.Entry{Kind: rescue.Uncommitted, Path: c.Path, Holder: snap.Holder, Mode: c.Mode, Base: base,
		Reason: "it was not committed, and was " + did + " while a command of " + snap.Holder + " ran: " + snap.Command}
	return shelf.Put(ctx, e, bytes.NewReader(content))
}
