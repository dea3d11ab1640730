package session

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path"
	"slices"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/landing"
	"lockkeeper/internal/session/refusal"
	"lockkeeper/lock"
	"lockkeeper/rescue"
)

// An Uncovered is a file that another holder holds and that changed while a command of this
// session ran.
type Uncovered struct {
	Path    string
	Holder  refusal.Holder
	Gone    bool   // the file was removed
	Doubt   string // why another program may have changed the file; empty: no other program can have
	Rescue  string // id of the change on the rescue shelf; empty: not kept
	Back    bool   // the file was restored to the holder's version
	NotBack string // why the file was not restored, if it should have been
}

// Compare checks, after a command, the files that others hold, for writing or reading. A
// change since the call began that is not the holder's own work is attributed to this session
// and kept. It is reverted if restore is set and no other program can have made it. Commands in
// the background are compared along with the call, and each change is reported once.
func (s *Session) Compare(ctx context.Context, c Call, restore bool) (list []Uncovered, err error) {
	now, err := fileClock()
	if err != nil {
		return nil, err
	}
	ended := c
	if c = s.with(c, now); c.At == 0 {
		return nil, nil
	}
	defer func() {
		if err != nil && ended.At != 0 { // the next call makes the comparison, as for a background command
			s.toBackground(ended)
		}
	}()
	paths, err := s.registry.heldPaths(ctx)
	if err != nil {
		return nil, err
	}
	touched, err := s.registry.touchedSince(ctx, paths, c.At)
	if err != nil {
		return nil, err
	}
	records, err := s.registry.records()
	if err != nil {
		return nil, err
	}
	touched = append(touched, s.registry.swapped(records, touched, now)...)
	if len(touched) == 0 {
		return nil, nil
	}
	found, err := s.holders(ctx, touched)
	if err != nil {
		return nil, err
	}
	sessions := map[string]*record{} // records of sessions, by grant
	for _, r := range records {
		sessions[r.GrantID] = &r
	}
	var first, rest []lockkeeper.ConflictInfo // changes to files of sessions are kept first
	for _, held := range found {
		if sessions[held.GrantID] != nil {
			first = append(first, held)
		} else {
			rest = append(rest, held)
		}
	}
	var changes []change
	var gaps []lockkeeper.Event
	for _, held := range append(first, rest...) {
		x, ok, failed := s.attribute(ctx, c, held, sessions[held.GrantID], len(changes) < mostKept)
		if err = failed; err != nil {
			break
		}
		if ok {
			changes = append(changes, x)
			gaps = append(gaps, s.gap(x.Path, x.reason, map[string]string{"rescue": x.Rescue, "doubt": x.Doubt}))
		}
	}
	if err = errors.Join(err, s.record(ctx, gaps)); err == nil {
		s.tell(changes)
	}
	for _, x := range changes {
		if restore && x.Doubt == "" {
			if x.NotBack = "a person's editor could have made the same change"; spelled(c.Programs, x.Path, Copy(s.registry.app, x.was.Sum), x.content) {
				x.Back, x.NotBack = s.restore(ctx, x)
			}
		}
		list = append(list, x.Uncovered)
	}
	return list, err
}

// mostKept limits the changes that are kept after one command. A program that fills a directory
// of another session would otherwise use up the time. Further changes are only shown and recorded.
const mostKept = 200

// change is an uncovered change while Compare handles it.
type change struct {
	Uncovered
	held    lockkeeper.ConflictInfo
	was     File  // as its holder left it, if known
	is      Print // the current state
	content []byte
	reason  string // reason in the event
}

// holders returns one holder for each path that others hold. It asks for few paths at a time,
// because long answers are truncated. For a name that cannot be locked it asks for the directory.
func (s *Session) holders(ctx context.Context, paths []string) (list []lockkeeper.ConflictInfo, err error) {
	const few = 100
	known := map[string]bool{}
	for part := range slices.Chunk(paths, few) {
		var locks []lockkeeper.Lock
		for _, p := range part { // as nodes, so that locks below a directory do not match
			l := lockkeeper.Lock{Target: lockkeeper.Target{Path: p, Kind: lockkeeper.Node}, Mode: lockkeeper.Write}
			for l.Validate() != nil {
				l.Path = path.Dir(l.Path)
			}
			locks = append(locks, l)
		}
		found, err := s.others(ctx, locks)
		if err != nil {
			return nil, err
		}
		for _, c := range found {
			if c.Kind == lockkeeper.Held && !known[c.Path] {
				known[c.Path] = true
				list = append(list, c)
			}
		}
	}
	return list, nil
}

// Told is a change that was reported: the current file, and the file as its holder left it.
// Without both, a second removal of a file would look like the first.
type Told struct {
	Is  Print `json:"is"`
	Was Print `json:"was"`
}

func (x change) told() Told { return Told{Is: x.is, Was: x.was.Print} }

// tell records that changes were reported.
func (s *Session) tell(changes []change) {
	if s.rec.Told == nil {
		s.rec.Told = map[string]Told{}
	}
	for _, x := range changes {
		s.rec.Told[x.Path] = x.told()
	}
}

// attribute decides who made a change, and keeps it if keep is set. holder is the record of the
// holder's session, or nil if the holder is not a session or belongs to another user.
func (s *Session) attribute(ctx context.Context, c Call, held lockkeeper.ConflictInfo, holder *record, keep bool) (x change, ok bool, err error) {
	x.Path, x.held = held.Path, held
	if x.is, x.content, err = s.registry.read(x.Path); err != nil {
		return x, false, err
	}
	x.Gone = x.is.Inode == 0
	if holder != nil {
		x.was = holder.Files[x.Path]
		if known := x.was.Inode != 0 || x.was.Own; !x.was.changed(x.is) && (known || x.Gone) {
			return x, false, nil // the file is as its holder left it
		}
	}
	if told, before := s.rec.Told[x.Path]; before && told == x.told() {
		return x, false, nil
	}
	now, err := fileClock()
	if err != nil {
		return x, false, err
	}
	switch {
	case held.BlockingMode != lockkeeper.Write:
		x.Doubt = "its holder only reads it, and a person's editor leaves the same traces"
	case holder == nil:
		x.Doubt = "its holder does not report what it writes"
	case holder.mayWrite(x.Path, now), x.was.Found != nil && !x.was.Found.changed(x.is):
		x.Doubt = "its holder was at work at the same time"
	case len(naming(c.Command, x.Path)) == 0:
		x.Doubt = "no writing part of the command names the file, and a person's editor leaves the same traces"
	}
	if x.Holder, err = s.registry.Who(ctx, held); err != nil {
		return x, false, err
	}
	x.reason = "a command of " + s.rec.Callsign + " changed it while " + x.Holder.Name() + " held it: " + firstWords(c.Command)
	if keep {
		kept, err := s.shelve(ctx, rescue.Entry{Kind: rescue.Gap, Path: x.Path, Holder: s.rec.Callsign, Base: x.was.version(), Delete: x.Gone, Mode: 0o644, Reason: x.reason}, x.content)
		if err != nil {
			return x, false, err
		}
		x.Rescue = kept.ID
	}
	return x, true, nil
}

// gap returns the event that this session changed a file without a lock.
func (s *Session) gap(path, reason string, data map[string]string) lockkeeper.Event {
	return lockkeeper.Event{Kind: lockkeeper.EventGap, Actor: lockkeeper.Actor{Name: s.rec.Callsign, Kind: lockkeeper.ActorAgent},
		Holder: s.rec.Callsign, Locks: []lockkeeper.Lock{write(path)}, Reason: reason, Data: data}
}

// record adds events to the log.
func (s *Session) record(ctx context.Context, events []lockkeeper.Event) error {
	if len(events) == 0 {
		return nil
	}
	return s.registry.app.Locks.Update(ctx, func(a *lock.Tx) error {
		for _, ev := range events {
			if _, err := a.Append(ev); err != nil {
				return err
			}
		}
		return nil
	})
}

// restore writes the holder's content under the holder's grant. It replaces only the content
// that the comparison found, so a later edit stays.
func (s *Session) restore(ctx context.Context, x change) (done bool, why string) {
	content := Copy(s.registry.app, x.was.Sum)
	switch {
	case content == nil:
		return false, "its previous content is not kept"
	case x.is.Inode != 0 && x.is.Sum == "":
		return false, "its current content is too large, or it is not a regular file"
	}
	if err := s.registry.writableFor(ctx, x.held.GrantID); err != nil {
		return false, err.Error()
	}
	base := File{Print: x.is}.version()
	if x.is.Inode != 0 {
		info, err := os.Lstat(s.registry.at(x.Path))
		if err != nil {
			return false, err.Error()
		}
		base.Mode = info.Mode().Perm()
	}
	put := gate.Put(x.Path, content)
	put.Base = &base
	if _, err := landing.Apply(ctx, s.registry.app, x.held.GrantID, []gate.Change{put}, true); err != nil {
		return false, err.Error()
	}
	return true, ""
}

// version returns the file as the gate describes it, with the usual permissions.
func (f File) version() (v lockkeeper.Version) {
	if sum, err := hex.DecodeString(f.Sum); err == nil && len(sum) == sha256.Size {
		v = lockkeeper.Version{Kind: lockkeeper.File, Mode: 0o644, Sum: [32]byte(sum)}
	}
	return v
}

// shelve puts content on the rescue shelf unless the shelf already has it.
func (s *Session) shelve(ctx context.Context, e rescue.Entry, content []byte) (_ rescue.Entry, err error) {
	shelf := s.registry.app.Shelf()
	if content == nil && !e.Delete { // the file is too large to keep, or is not a regular file
		return e, nil
	}
	if s.shelf == nil {
		if s.shelf, err = shelf.List(ctx); err != nil {
			return e, err
		}
	}
	sum := sha256.Sum256(content)
	same := func(o rescue.Entry) bool {
		return o.Kind == e.Kind && o.Path == e.Path && o.Holder == e.Holder && o.Delete == e.Delete && (e.Delete || o.Sum == hex.EncodeToString(sum[:]))
	}
	if i := slices.IndexFunc(s.shelf, same); i >= 0 {
		return s.shelf[i], nil
	}
	if e, err = shelf.Put(ctx, e, bytes.NewReader(content)); err == nil {
		s.shelf = append(s.shelf, e)
	}
	return e, err
}
