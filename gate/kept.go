package gate

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"time"

	"lockkeeper"
)

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
