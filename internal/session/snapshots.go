package session

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"time"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session/snapshot"
	"lockkeeper/rescue"
)

// Snapshots returns the store for copies of uncommitted files that commands of sessions may
// remove. It is on the disk of the tree, so that copies can be reflinks.
func Snapshots(a *project.Project) *snapshot.Store {
	return snapshot.Open(a.Root.Dir(), filepath.Join(a.Root.Dir(), project.DirName, "snapshots"))
}

// orphaned is how long a snapshot of an unknown process stays open.
const orphaned = 24 * time.Hour

// Recover finishes the work of sessions and hooks that died, and of hooks that ran out of time. It
// puts files on the rescue shelf that were lost during a command and that no hook compared
// afterwards, and restores the permissions of files that nobody holds any more.
func Recover(ctx context.Context, a *project.Project) error {
	store := Snapshots(a)
	err := store.Recover(func(snap *snapshot.Snapshot) bool { return mayRun(a, snap) }, func(snap *snapshot.Snapshot) error {
		changes, err := store.Changed(ctx, snap)
		for _, c := range changes {
			if _, err := KeepUncommitted(ctx, a, snap, c); err != nil {
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
	return errors.Join(err, Open(a).RestoreModes(ctx), store.Prune(time.Now().Add(-a.Config.Gate.Keep)))
}

// mayRun reports whether the command of a snapshot may still be running.
func mayRun(a *project.Project, snap *snapshot.Snapshot) bool {
	if snap.Process != nil {
		switch a.Host.Liveness(*snap.Process) {
		case lockkeeper.ProcessAlive:
			return true
		case lockkeeper.ProcessDead:
			return false
		}
	}
	return time.Since(snap.At) < orphaned
}

// KeepUncommitted puts the content that a lost file had before the command of a snapshot on
// the rescue shelf.
func KeepUncommitted(ctx context.Context, a *project.Project, snap *snapshot.Snapshot, c snapshot.Change) (rescue.Entry, error) {
	store, shelf := Snapshots(a), a.Shelf()
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

// Rescued lists the entries of the rescue shelf, oldest first. It first recovers files lost
// during commands whose end was not compared. If that fails, it returns an error and the list.
func Rescued(ctx context.Context, a *project.Project) ([]rescue.Entry, error) {
	recovering := Recover(ctx, a)
	list, err := a.Shelf().List(ctx)
	return list, errors.Join(recovering, err)
}
