package session

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"slices"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/refusal"
	"lockkeeper/lock"
	"lockkeeper/rescue"
)

// Uncovered is a file that somebody else holds and that was changed while a command of this
// session ran.
type Uncovered struct {
	Path    string
	Holder  refusal.Holder
	Gone    bool   // it is not there any more
	Doubt   string // why it may have been somebody else; empty: nobody else was at work
	Rescue  string // where the change is kept; empty: it is not
	Back    bool   // the file is again as its holder left it
	NotBack string // why it is not, where it was to be
}

// Compare looks, after a command, at all that others hold: what changed since the call
// began and is not the holder's own work is attributed to this session, kept, and put back
// when that is asked for and nobody else can have made it. Commands in the background are
// compared along with the call, and each change is told once.
func (s *Seat) Compare(ctx context.Context, c Call, putBack bool) ([]Uncovered, error) {
	now, err := fileClock()
	if err != nil {
		return nil, err
	}
	if c = s.with(c, now); c.At == 0 {
		return nil, nil
	}
	paths, err := s.book.heldPaths(ctx)
	if err != nil {
		return nil, err
	}
	touched, err := s.book.touchedSince(ctx, paths, c.At)
	if err != nil {
		return nil, err
	}
	records, err := s.book.records()
	if err != nil {
		return nil, err
	}
	touched = append(touched, s.book.swapped(records, touched, now)...)
	if len(touched) == 0 {
		return nil, nil
	}
	found, err := s.others(ctx, writes(touched))
	if err != nil {
		return nil, err
	}
	var list []Uncovered
	for _, held := range found {
		if held.BlockingMode != lockkeeper.Write || held.Kind != lockkeeper.Held || lockkeeper.IsAncestor(held.Path, held.BlockingPath) {
			continue
		}
		var holder *record
		for _, r := range records {
			if r.GrantID == held.GrantID {
				holder = &r
			}
		}
		u, ok, err := s.attribute(ctx, c, held, holder, putBack)
		if err != nil {
			return list, err
		}
		if ok {
			list = append(list, u)
		}
	}
	return list, nil
}

// attribute decides whose a change is. holder is what the holder's session remembers; nil
// when it is none, or another user's.
func (s *Seat) attribute(ctx context.Context, c Call, held lockkeeper.ConflictInfo, holder *record, putBack bool) (u Uncovered, ok bool, err error) {
	is, content, err := s.book.take(held.Path)
	if told, before := s.rec.Told[held.Path]; err != nil || before && told == is {
		return u, false, err
	}
	u = Uncovered{Path: held.Path, Gone: is.Inode == 0}
	var was File
	if holder != nil {
		was = holder.Files[held.Path]
		if known := was.Inode != 0 || was.Own; !was.changed(is) && (known || u.Gone) {
			return u, false, nil // as its holder left it
		}
	}
	now, err := fileClock()
	if err != nil {
		return u, false, err
	}
	switch {
	case holder == nil:
		u.Doubt = "its holder is not one that says what it writes"
	case holder.mayWrite(held.Path, now):
		u.Doubt = "its holder was at work at the same time"
	case len(naming(c.Command, held.Path)) == 0:
		u.Doubt = "nothing in the command that writes names it, and a person's editor leaves the same traces"
	}
	if u.Holder, err = s.book.who(ctx, held); err != nil {
		return u, false, err
	}
	kept, err := s.book.shelve(ctx, rescue.Entry{Kind: rescue.Gap, Path: held.Path, Holder: s.rec.Callsign, Base: was.version(), Delete: u.Gone, Mode: 0o644,
		Reason: "a command of " + s.rec.Callsign + " changed it while " + u.Holder.Name() + " held it: " + firstWords(c.Command)}, content)
	if err != nil {
		return u, false, err
	}
	u.Rescue = kept.ID
	if s.rec.Told == nil {
		s.rec.Told = map[string]Print{}
	}
	s.rec.Told[held.Path] = is
	if err := s.record(ctx, kept, u); err != nil {
		return u, false, err
	}
	if putBack && u.Doubt == "" {
		if u.NotBack = "a person's editor could have left the same"; spelled(c.Command, held.Path, s.book.copied(was.Sum), content) {
			u.Back, u.NotBack = s.putBack(ctx, held, was, is)
		}
	}
	return u, true, nil
}

// record puts a change that no lock covers into the record of events.
func (s *Seat) record(ctx context.Context, kept rescue.Entry, u Uncovered) error {
	return s.book.app.Locks.Within(ctx, func(a *lock.Act) error {
		_, err := a.Note(lockkeeper.Event{Kind: lockkeeper.EventGap, Actor: lockkeeper.Actor{Name: s.rec.Callsign, Kind: lockkeeper.ActorAgent},
			Holder: s.rec.Callsign, Locks: []lockkeeper.Lock{write(u.Path)}, Reason: kept.Reason, Data: map[string]string{"rescue": kept.ID, "doubt": u.Doubt}})
		return err
	})
}

// putBack lands what the holder had left, under the holder's own grant and only onto what
// was found: an edit that came since stays.
func (s *Seat) putBack(ctx context.Context, held lockkeeper.ConflictInfo, was File, is Print) (done bool, why string) {
	content := s.book.copied(was.Sum)
	switch {
	case content == nil:
		return false, "what was there is not kept"
	case is.Inode != 0 && is.Sum == "":
		return false, "what is there is too large, or no file"
	}
	base := File{Print: is}.version()
	if is.Inode != 0 {
		info, err := os.Lstat(s.book.at(held.Path))
		if err != nil {
			return false, err.Error()
		}
		base.Mode = info.Mode().Perm()
	}
	change := gate.Put(held.Path, content)
	change.Base = &base
	if _, err := s.book.app.Apply(ctx, held.GrantID, []gate.Change{change}, true); err != nil {
		return false, err.Error()
	}
	return true, ""
}

// version is a file as the gate knows it, with the permissions of most files.
func (f File) version() (v lockkeeper.Version) {
	if sum, err := hex.DecodeString(f.Sum); err == nil && len(sum) == sha256.Size {
		v = lockkeeper.Version{Kind: lockkeeper.File, Mode: 0o644, Sum: [32]byte(sum)}
	}
	return v
}

// shelve keeps content, unless the same is on the shelf already.
func (b *Book) shelve(ctx context.Context, e rescue.Entry, content []byte) (rescue.Entry, error) {
	shelf := b.app.Shelf()
	if content == nil && !e.Delete { // too large to keep, or no file
		return e, nil
	}
	all, err := shelf.List(ctx)
	if err != nil {
		return e, err
	}
	sum := sha256.Sum256(content)
	same := func(o rescue.Entry) bool {
		return o.Kind == e.Kind && o.Path == e.Path && o.Holder == e.Holder && o.Delete == e.Delete && (e.Delete || o.Sum == hex.EncodeToString(sum[:]))
	}
	if i := slices.IndexFunc(all, same); i >= 0 {
		return all[i], nil
	}
	if e.Delete {
		return shelf.Put(ctx, e, nil)
	}
	return shelf.Put(ctx, e, bytes.NewReader(content))
}
