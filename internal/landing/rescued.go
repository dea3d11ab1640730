package landing

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"

	"lockkeeper"
	"lockkeeper/durable"
	"lockkeeper/gate"
	"lockkeeper/internal/project"
	"lockkeeper/rescue"
)

// Barred returns the reason why the gate never writes a path, under any grant. It returns nil if
// the gate may write the path.
func Barred(ctx context.Context, a *project.Project, path string) (*lockkeeper.LockViolationError, error) {
	g, err := a.Gate()
	if err != nil {
		return nil, err
	}
	var v *lockkeeper.LockViolationError
	err = g.Check(ctx, nil, path)[0]
	if errors.As(err, &v) {
		if v.Check == "allowlist" {
			return v, nil
		}
		return nil, nil
	}
	return nil, err
}

// Onto says on which version of the file a kept change lands. The zero Onto is its base.
type Onto struct {
	Current bool                // the file as it is now, which is replaced
	Base    *lockkeeper.Version // what the file must be, if it moved on since the change was made
	Merged  []byte              // with Base: the content that lands; nil: the kept one
}

// LandRescued lands an entry of the rescue shelf under a grant that holds its path, and
// drops the entry. Unless onto says otherwise, the path must still have the base version of the
// entry.
func LandRescued(ctx context.Context, a *project.Project, grant *lockkeeper.Grant, e rescue.Entry, onto Onto) (_ *lockkeeper.Landing, err error) {
	g, err := a.Gate()
	if e.Kind == rescue.Uncommitted { // the file existed before, even if agents may not write there
		if g, err = a.GateFor(e.Path); err == nil {
			defer func() { err = errors.Join(err, g.Close(context.WithoutCancel(ctx))) }()
		}
	}
	if err != nil {
		return nil, err
	}
	shelf := a.Shelf()
	if e.Kind == rescue.Whole {
		l, err := g.LandKeptDir(ctx, grant, e, onto.Current)
		if err != nil {
			return nil, err
		}
		return l, shelf.Drop(e.ID)
	}
	change := gate.Change{Path: e.Path, Delete: e.Delete, Stored: true}
	if e.Mode != 0 && !e.Delete {
		change.Mode = &e.Mode
	}
	if !onto.Current {
		change.Base = &e.Base
	}
	if onto.Current && e.Kind == rescue.Uncommitted { // the landing may not be undoable
		if err := keepReplaced(ctx, a, e); err != nil {
			return nil, err
		}
	}
	if e.Sum != "" && !e.Delete {
		if err := checkRescued(shelf, e); err != nil {
			return nil, err
		}
		change.Body = func() (io.ReadCloser, error) { return shelf.Content(e.ID) }
	}
	if onto.Base != nil {
		change.Base = onto.Base
		if onto.Base.Exists() && (e.Mode == e.Base.Mode || !e.Base.Exists()) {
			change.Mode = nil // the change leaves the permissions of the file as they are
		}
	}
	if onto.Merged != nil {
		change.Body, change.Delete = gate.Bytes(onto.Merged), false
	}
	l, err := g.Commit(ctx, grant, []gate.Change{change})
	if err != nil {
		return nil, err
	}
	return l, shelf.Drop(e.ID)
}

// keepReplaced puts the file at the path of an entry on the shelf, unless it is the same.
func keepReplaced(ctx context.Context, a *project.Project, e rescue.Entry) (err error) {
	root, err := os.Open(a.Root.Dir())
	if err != nil {
		return err
	}
	f, err := durable.OSDisk{}.OpenFile(root, e.Path) // follows no link
	err = errors.Join(err, root.Close())
	if f == nil && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if f == nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err // the gate reports why it does not replace the file
	}
	restored := lockkeeper.Version{Kind: lockkeeper.File, Mode: e.Mode}
	if _, err := hex.Decode(restored.Sum[:], []byte(e.Sum)); err != nil {
		return err
	}
	shelf := a.Shelf()
	kept, err := shelf.Put(ctx, rescue.Entry{Kind: rescue.Uncommitted, Path: e.Path, Holder: e.Holder, Mode: info.Mode().Perm(), Base: restored,
		Reason: "`lockkeeper rescue restore " + e.ID + "` replaced it"}, f)
	if err == nil && kept.Sum == e.Sum {
		err = shelf.Drop(kept.ID)
	}
	return err
}

// checkRescued compares the content of an entry with its hash.
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
