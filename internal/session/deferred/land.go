package deferred

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/machine/filelock"
	"lockkeeper/lock"
	"lockkeeper/rescue"
)

// Land lands the patches whose files are free, and returns those that landed or were rescued. If
// another process is landing patches, it does nothing.
func (q *Queue) Land(ctx context.Context) (ended []Patch, err error) {
	if none, err := q.empty(); none || err != nil {
		return nil, err
	}
	door, err := os.OpenFile(filepath.Join(q.dir, "door.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, door.Close()) }()
	if mine, err := filelock.Try(door); err != nil || !mine {
		return nil, err
	}
	found, _, err := q.all()
	waits := map[string]bool{}
	for _, s := range found {
		if ctx.Err() != nil {
			return ended, errors.Join(err, context.Cause(ctx))
		}
		if s.State != Queued {
			err = errors.Join(err, q.expire(s))
			continue
		}
		if waits[s.Path] {
			continue
		}
		done, failed := q.land(ctx, &s) // a failure stops only later patches of the same file
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("deferred patch %s of %s: %w", s.ID, s.Path, failed))
		}
		if waits[s.Path] = !done || failed != nil; done && failed == nil {
			ended = append(ended, s.Patch)
		}
	}
	return ended, err
}

// empty reports whether no patches are stored. It reads the directory once.
func (q *Queue) empty() (bool, error) {
	matches, err := filepath.Glob(filepath.Join(q.dir, "*"+patchEnd))
	return len(matches) == 0, err
}

// told limits how long a result is kept for a session that does not ask for it.
const told = 14 * 24 * time.Hour

func (q *Queue) expire(s stored) error {
	if s.Session != "" && q.now().Sub(s.At) < told {
		return nil
	}
	err := os.Remove(q.file(s.ID))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// land lands or rescues one patch, unless its file is locked.
func (q *Queue) land(ctx context.Context, s *stored) (done bool, err error) {
	g, err := q.app.Hold(ctx, lockkeeper.Request{Holder: s.By, Metadata: map[string]string{"reason": "lands deferred patch " + s.ID},
		Locks: []lockkeeper.Lock{{Target: lockkeeper.Target{Path: s.Path, Kind: lockkeeper.File}, Mode: lockkeeper.Write}}}, 0)
	switch {
	case lock.IsBlocked(err):
		return false, nil
	case err != nil:
		return false, err
	}
	defer func() { err = errors.Join(err, g.Release(context.WithoutCancel(ctx))) }()
	content, base, err := q.read(s.Path)
	if err != nil {
		return true, q.rescue(ctx, s, err.Error())
	}
	want, fits := s.fit(content, base)
	switch {
	case !fits:
		return true, q.rescue(ctx, s, "the file has changed since")
	case base.Exists() != s.Drops && bytes.Equal(content, want):
		s.State = Landed // the patch landed before a crash, or another program made the same change
		return true, q.save(ctx, *s)
	}
	change := gate.Change{Path: s.Path, Delete: s.Drops, Base: &base, Stored: true}
	if !s.Drops {
		change.Body = gate.Bytes(want)
	}
	door, err := q.app.Gate()
	if err != nil {
		return false, err
	}
	if refused := door.Check(ctx, &g.Grant, s.Path)[0]; refused != nil {
		return true, q.rescue(ctx, s, refused.Error())
	}
	landing, err := door.Commit(ctx, &g.Grant, []gate.Change{change})
	var violation *lockkeeper.LockViolationError
	var input *lockkeeper.InputError
	switch {
	case errors.As(err, &violation):
		return true, q.rescue(ctx, s, violation.Reason)
	case errors.As(err, &input):
		return true, q.rescue(ctx, s, input.Reason)
	case err != nil:
		return false, err
	}
	s.State = Landed
	if landing != nil {
		s.Landing = landing.Seq
	}
	return true, q.save(ctx, *s)
}

// fit applies the patch to the current content.
func (s *stored) fit(content []byte, base lockkeeper.Version) ([]byte, bool) {
	if len(s.Text) == 0 {
		return s.Want, sameContent(base, s.Base) || base.Exists() && bytes.Equal(content, s.Want)
	}
	if base.Exists() && bytes.Equal(content, s.Want) {
		return s.Want, true
	}
	d, err := parseDiff(string(s.Text))
	if err != nil || d.create == base.Exists() {
		return nil, false
	}
	exact := s.Exact && sameContent(base, s.Base)
	want, ok := d.apply(string(content), exact)
	return []byte(want), ok && (exact || !s.Bound)
}

// rescue puts the result of a patch that cannot land on the rescue shelf.
func (q *Queue) rescue(ctx context.Context, s *stored, why string) error {
	e := rescue.Entry{Kind: rescue.Gap, Path: s.Path, Holder: s.By, Base: s.Base, Delete: s.Drops, Mode: 0o644, Reason: fmt.Sprintf("deferred patch %s: %s", s.ID, why)}
	if s.Base.Exists() {
		e.Mode = s.Base.Mode
	}
	var err error
	if s.Drops {
		e, err = q.app.Shelf().Put(ctx, e, nil)
	} else {
		e, err = q.app.Shelf().Put(ctx, e, bytes.NewReader(s.Want))
	}
	if err != nil {
		return err
	}
	s.State, s.Why, s.Rescue = Rescued, why, e.ID
	return q.save(ctx, *s)
}
