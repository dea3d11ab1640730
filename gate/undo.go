package gate

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// Undo reverses a landing with a new one. The grant must hold write locks on its paths. If
// any path has changed since, Undo refuses as a whole and names the later landings.
func (g *Gate) Undo(ctx context.Context, grant *lockkeeper.Grant, seq uint64) (*lockkeeper.Landing, error) {
	l, changes, err := g.undoable(ctx, seq)
	if err != nil {
		return nil, err
	}
	if Replaced(l) != "" {
		return g.undoDir(ctx, grant, l)
	}
	c := g.newCommit(grant)
	c.landing.Undoes = seq
	c.landing.Clears = slices.Clone(l.Made)
	slices.Reverse(c.landing.Clears)
	back, err := c.run(ctx, changes)
	if err == nil {
		return back, nil
	}
	var moved []string
	for _, v := range lockkeeper.Violations(err) {
		if v.Check == checkBase {
			moved = append(moved, v.Path)
		}
	}
	if moved != nil {
		return nil, g.undoConflict(ctx, l, moved)
	}
	return nil, err
}

// CanUndo returns the error with which Undo would now refuse a landing, apart from locks.
// It changes nothing.
func (g *Gate) CanUndo(ctx context.Context, seq uint64) error {
	l, changes, err := g.undoable(ctx, seq)
	if err != nil {
		return err
	}
	var moved []string
	for _, c := range changes {
		now, err := g.observePath(c.Path)
		if err != nil {
			return err
		}
		if now != *c.Base {
			moved = append(moved, c.Path)
		}
	}
	if moved != nil {
		return g.undoConflict(ctx, l, moved)
	}
	return nil
}

// undoable returns a landing and the changes that reverse it. It does not compare them with
// the current files.
func (g *Gate) undoable(ctx context.Context, seq uint64) (*lockkeeper.Landing, []Change, error) {
	l, err := g.Landing(ctx, seq)
	if err != nil {
		return nil, nil, err
	}
	refuse := func(reason, next string) error {
		return &lockkeeper.RefusedError{Act: "undo of landing " + itoa(seq), Reason: reason, Next: next}
	}
	switch {
	case l.State == lockkeeper.Undone:
		return nil, nil, refuse("it was rolled back because of another writer's edit", "nothing to undo")
	case l.State == lockkeeper.Decided && !g.isDone(l):
		return nil, nil, refuse("it is not complete yet", "lockkeeper gate recover")
	case !g.isHere(l):
		return nil, nil, refuse("its files are on "+siteOf(l), "undo it there")
	}
	if by, err := g.undoneBy(ctx, l); err != nil || by != 0 {
		return nil, nil, cmp.Or(err, refuse("landing "+itoa(by)+" has undone it", "lockkeeper undo "+itoa(by)+", to restore it"))
	}
	changes, err := g.reversal(l)
	return l, changes, err
}

// isDone reports whether this process has completed a landing that is not yet marked.
func (g *Gate) isDone(l *lockkeeper.Landing) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(g.done[l.GrantID], func(e store.TakenLanding) bool { return e.Seq == l.Seq })
}

func (g *Gate) reversal(l *lockkeeper.Landing) ([]Change, error) {
	kept, err := g.isKept(l)
	if err != nil {
		return nil, err
	}
	var changes []Change
	for n, a := range l.Changes {
		if a.Old == a.New {
			continue
		}
		base := a.New
		change := Change{Path: a.Path, Base: &base, Delete: true, Stored: true}
		if a.Old.Exists() {
			mode := a.Old.Mode
			change.Mode, change.Delete = &mode, false
			change.Body = func() (io.ReadCloser, error) { return g.disk.OpenFile(g.kept, originalAt(l, n)) }
			if !kept {
				return nil, &lockkeeper.RefusedError{Act: "undo of landing " + itoa(l.Seq), Reason: "the original of " + a.Path + " is no longer kept",
					Next: "restore it from version control"}
			}
		}
		changes = append(changes, change)
	}
	return changes, nil
}

// undoneBy returns the landing that undid another one and is in effect; 0 if there is none.
func (g *Gate) undoneBy(ctx context.Context, l *lockkeeper.Landing) (uint64, error) {
	later, err := g.since(ctx, l, l.Changes[0].Path)
	if err != nil {
		return 0, err
	}
	for _, s := range later {
		if s.Undoes == l.Seq {
			return s.Seq, nil
		}
	}
	return 0, nil
}

// since lists the later landings that changed a path and are in effect: neither rolled back
// nor undone.
func (g *Gate) since(ctx context.Context, l *lockkeeper.Landing, path string) ([]*lockkeeper.Landing, error) {
	later, err := g.landings(ctx, store.LandingQuery{Path: path, After: l.Seq})
	gone := map[uint64]bool{}
	var inEffect []*lockkeeper.Landing
	for _, s := range slices.Backward(later) { // an undo may have been undone
		if s.State == lockkeeper.Undone || gone[s.Seq] {
			continue
		}
		gone[s.Undoes] = true
		if s.Undoes == 0 || s.Undoes <= l.Seq {
			inEffect = append(inEffect, s)
		}
	}
	slices.Reverse(inEffect)
	return inEffect, err
}

// nameOf returns the name of the work of a holder that is an item of the queue, or the holder.
func (g *Gate) nameOf(ctx context.Context, holder string) string {
	it, err := store.Read(ctx, g.store, func(r store.Reader) (*lockkeeper.Item, error) { return r.Item(holder) })
	if err != nil || it == nil { // the message is about the conflict
		return holder
	}
	return cmp.Or(it.Workflow, holder)
}

// undoConflict returns the refusal of an undo because some paths changed since the landing.
func (g *Gate) undoConflict(ctx context.Context, l *lockkeeper.Landing, moved []string) error {
	var told []string
	var undo []uint64
	for _, path := range moved {
		later, err := g.since(ctx, l, path)
		if err != nil {
			return err
		}
		by := ", outside the gate"
		if last := len(later) - 1; last >= 0 {
			now, err := g.observePath(path)
			if err == nil && now == leftBy(later[last], path) {
				by = ", by landing " + itoa(later[last].Seq) + " of " + g.nameOf(ctx, later[last].Holder)
				undo = append(undo, later[last].Seq)
			}
		}
		told = append(told, path+" was changed since"+by)
	}
	next := "restore the files by hand from " + stateDir + "/" + keptDir + "/" + keptAt(l)
	if len(undo) > 0 {
		slices.Sort(undo)
		var first []string
		for _, seq := range slices.Backward(slices.Compact(undo)) {
			first = append(first, itoa(seq))
		}
		next = "lockkeeper undo " + strings.Join(first, ", then ") + "; or " + next
	}
	return &lockkeeper.RefusedError{Act: "undo of landing " + itoa(l.Seq), Reason: strings.Join(told, "; "), Next: next}
}

func leftBy(l *lockkeeper.Landing, path string) (left lockkeeper.Version) {
	for _, a := range l.Changes {
		if a.Path == path {
			left = a.New
		}
	}
	return left
}

// UndoneBy returns the landing that undid another one and was not undone itself; 0 if there
// is none.
func (g *Gate) UndoneBy(ctx context.Context, seq uint64) (uint64, error) {
	l, err := g.Landing(ctx, seq)
	if err != nil {
		return 0, err
	}
	return g.undoneBy(ctx, l)
}

// keptDay returns the name of the directory with the originals of a day's landings.
func keptDay(l *lockkeeper.Landing) string { return l.At.UTC().Format(time.DateOnly) }

// keepsOne reports whether a landing has a single file as its original, which is kept as a
// file. Otherwise the stage itself is kept.
func keepsOne(l *lockkeeper.Landing) bool {
	return len(l.Changes) == 1 && l.Changes[0].Old.Kind == lockkeeper.File
}

// keptAt returns the path of a landing's originals in the kept directory.
func keptAt(l *lockkeeper.Landing) string {
	at := keptDay(l) + "/" + l.Commit
	if keepsOne(l) {
		at += ".0"
	}
	return at
}

// originalAt returns the path of the original of change n of a landing in the kept directory.
func originalAt(l *lockkeeper.Landing, n int) string {
	if keepsOne(l) {
		return keptAt(l)
	}
	return keptAt(l) + "/" + l.Commit + "." + strconv.Itoa(n)
}

// isKept reports whether a landing's originals are kept. They are kept only after all its
// changes were made.
func (g *Gate) isKept(l *lockkeeper.Landing) (bool, error) {
	_, err := g.disk.Lstat(g.kept, keptAt(l))
	return err == nil, unlessMissing(err)
}

// keepOriginals moves the originals into the kept directory after all changes were made. It
// also keeps an empty stage, which tells recovery that the landing is complete and that
// later edits of its paths are no conflict.
func (s *stage) keepOriginals(l *lockkeeper.Landing) (err error) {
	g := s.g
	if err := s.collectDraft(); err != nil {
		return err
	}
	for n, c := range l.Changes {
		if c.Old == c.New && c.Old.Exists() { // the content of this stage entry is not an original
			if err := unlessMissing(g.disk.Remove(s.at(n))); err != nil {
				return err
			}
		}
	}
	day, err := g.subdir(g.kept, keptDay(l))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.disk.Close(day)) }()
	if !keepsOne(l) {
		return g.disk.Move(s.in, s.name, day, l.Commit)
	}
	own, original := s.at(0)
	if err := g.disk.Move(own, original, day, original); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	gone, err := s.isGone()
	if gone {
		return fs.ErrNotExist
	}
	return err // a power failure lost the original
}

// returnOriginals moves originals into the kept stage, from which a recovery had taken
// them just before the stage was kept.
func (s *stage) returnOriginals(l *lockkeeper.Landing) (err error) {
	if keepsOne(l) {
		return nil // the file is already kept
	}
	g := s.g
	kept, err := g.disk.OpenDir(g.kept, keptAt(l))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, kept.Close()) }()
	names, err := g.disk.List(s.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := unlessMissing(g.disk.Move(s.dir, name, kept, name)); err != nil {
			return err
		}
	}
	return nil
}

// forget deletes originals and rescue entries that have expired.
func (g *Gate) forget(now time.Time) (dropped int, err error) {
	before := now.Add(-g.opt.Keep)
	days, err := g.disk.List(g.kept)
	if err != nil {
		return 0, err
	}
	for _, name := range days {
		day, err := time.Parse(time.DateOnly, name)
		if err != nil || !day.AddDate(0, 0, 1).Before(before) {
			continue
		}
		dir, err := g.disk.OpenDir(g.kept, name)
		if err != nil {
			return dropped, err
		}
		if err := errors.Join(g.empty(dir), dir.Close(), g.disk.RemoveDir(g.kept, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return dropped, err
		}
		dropped++
	}
	pieces, err := g.shelf.Prune(before)
	return dropped + pieces, err
}
