package gate

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// Undo puts back what a landing changed, through the same gate: the grant has to
// hold its paths for writing. It refuses as a whole when anything has changed since,
// and says which later landings stand on this one.
func (g *Gate) Undo(ctx context.Context, grant *lockkeeper.Grant, seq uint64) (*lockkeeper.Landing, error) {
	l, changes, err := g.undoable(ctx, seq)
	if err != nil {
		return nil, err
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
	for _, v := range violations(err) {
		if v.Check == checkBase {
			moved = append(moved, v.Path)
		}
	}
	if moved != nil {
		return nil, g.standingOn(ctx, l, moved)
	}
	return nil, err
}

// CanUndo is why Undo would refuse a landing as things are, whoever holds its paths; nil
// when it would not. It changes nothing.
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
		return g.standingOn(ctx, l, moved)
	}
	return nil
}

// undoable is a landing with the changes that take it back, unless that can be refused
// without a look at what is there now.
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
		return nil, nil, refuse("it was taken back when it landed: somebody else's edit was in its way", "nothing is left to undo")
	case l.State == lockkeeper.Decided && !g.isDone(l):
		return nil, nil, refuse("it is not known to be done yet", "lockkeeper gate recover")
	case !g.isHere(l):
		return nil, nil, refuse("its files are on "+siteOf(l), "undo it there")
	case l.Draft != "":
		return nil, nil, refuse("it replaced a whole directory", "put it back by hand: as it was, it is in "+originalsOf(l))
	}
	if by, err := g.undoneBy(ctx, l); err != nil || by != 0 {
		return nil, nil, cmp.Or(err, refuse("landing "+itoa(by)+" has undone it", "to have it back: lockkeeper undo "+itoa(by)))
	}
	changes, err := g.reversal(l)
	return l, changes, err
}

// isDone reports whether this process has done a landing that is not marked yet.
func (g *Gate) isDone(l *lockkeeper.Landing) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(g.done[l.GrantID], func(e store.Ending) bool { return e.Seq == l.Seq })
}

// reversal makes the changes that take a landing back.
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
			change.Body = func() (io.ReadCloser, error) { return g.openOriginal(l, n) }
			if !kept {
				return nil, &lockkeeper.RefusedError{Act: "undo of landing " + itoa(l.Seq), Reason: "the original of " + a.Path + " is not kept any more",
					Next: "take it from your version control"}
			}
		}
		changes = append(changes, change)
	}
	return changes, nil
}

// undoneBy is the landing that undid another and still stands; 0 when none did.
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

// since lists the landings after one that changed a path and still stand: neither
// taken back nor undone.
func (g *Gate) since(ctx context.Context, l *lockkeeper.Landing, path string) ([]*lockkeeper.Landing, error) {
	later, err := g.landings(ctx, store.LandingQuery{Path: path, After: l.Seq})
	gone := map[uint64]bool{}
	var standing []*lockkeeper.Landing
	for _, s := range slices.Backward(later) { // an undo may have been undone
		if s.State == lockkeeper.Undone || gone[s.Seq] {
			continue
		}
		gone[s.Undoes] = true
		if s.Undoes == 0 || s.Undoes <= l.Seq {
			standing = append(standing, s)
		}
	}
	slices.Reverse(standing)
	return standing, err
}

// standingOn refuses an undo, and says what has happened since to its paths.
func (g *Gate) standingOn(ctx context.Context, l *lockkeeper.Landing, moved []string) error {
	var told []string
	var undo []uint64
	for _, path := range moved {
		later, err := g.since(ctx, l, path)
		if err != nil {
			return err
		}
		by := ", outside of the gate"
		if last := len(later) - 1; last >= 0 {
			now, err := g.observePath(path)
			if err == nil && now == leftBy(later[last], path) {
				by = ", by landing " + itoa(later[last].Seq) + " of " + later[last].Holder
				undo = append(undo, later[last].Seq)
			}
		}
		told = append(told, path+" was changed since"+by)
	}
	next := "put the files back by hand: as they were, they are in " + originalsOf(l)
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

// leftBy is what a landing left at a path.
func leftBy(l *lockkeeper.Landing, path string) (left lockkeeper.Version) {
	for _, a := range l.Changes {
		if a.Path == path {
			left = a.New
		}
	}
	return left
}

// UndoneBy is the landing that undid another one and was not undone itself; 0: what the
// other one changed still stands.
func (g *Gate) UndoneBy(ctx context.Context, seq uint64) (uint64, error) {
	l, err := g.Landing(ctx, seq)
	if err != nil {
		return 0, err
	}
	return g.undoneBy(ctx, l)
}

// keptDay names the directory that holds the originals of a day's landings.
func keptDay(l *lockkeeper.Landing) string { return l.At.UTC().Format(time.DateOnly) }

// keepsOne reports whether a landing has one original, a file. It is kept by itself;
// the originals of others are kept in the directory that was their stage.
func keepsOne(l *lockkeeper.Landing) bool {
	return len(l.Changes) == 1 && l.Changes[0].Old.Exists() && l.Draft == ""
}

// keptAt is where the originals of a landing are kept, below the kept directory.
func keptAt(l *lockkeeper.Landing) string {
	at := keptDay(l) + "/" + l.Commit
	if keepsOne(l) {
		at += ".0"
	}
	return at
}

// originalsOf is where the originals of a landing are, for people.
func originalsOf(l *lockkeeper.Landing) string { return stateDir + "/" + keptDir + "/" + keptAt(l) }

// openOriginal opens what a change of a landing displaced.
func (g *Gate) openOriginal(l *lockkeeper.Landing, n int) (*os.File, error) {
	at := keptAt(l)
	if !keepsOne(l) {
		at += "/" + l.Commit + "." + strconv.Itoa(n)
	}
	return g.disk.OpenFile(g.kept, at)
}

// isKept reports whether a landing's originals have been put away, which happens
// when all is done.
func (g *Gate) isKept(l *lockkeeper.Landing) (bool, error) {
	_, err := g.disk.Lstat(g.kept, keptAt(l))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// retire puts the originals away once everything is done. A stage without any is put
// away as well, because it says that all was done: what somebody changes afterwards
// is not in the way of the landing any more.
func (s *stage) retire(l *lockkeeper.Landing) (err error) {
	g := s.g
	if err := s.collectDraft(); err != nil {
		return err
	}
	for n, c := range l.Changes {
		if c.Old == c.New && c.Old.Exists() { // staged for nothing
			if err := g.disk.Remove(s.at(n)); err != nil && !errors.Is(err, fs.ErrNotExist) {
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
	return err // there is no original: it was lost with the power
}

// giveBack returns what was moved out of a stage that its writer was just putting
// away: the originals.
func (s *stage) giveBack(l *lockkeeper.Landing) (err error) {
	if keepsOne(l) {
		return nil // it is in one place or the other
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
		if err := g.disk.Move(s.dir, name, kept, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// forget drops originals and rescued content that are older than they are to be
// kept.
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
