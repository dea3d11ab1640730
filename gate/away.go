package gate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"time"

	"lockkeeper"
)

// A dirID identifies a directory on a disk. The birth time distinguishes it from a later
// one with the same inode.
type dirID struct {
	Inode uint64    `json:"inode"`
	Born  time.Time `json:"born,omitzero"`
}

func (d dirID) is(other dirID) bool { return d.Inode == other.Inode && d.Born.Equal(other.Born) }

func (g *Gate) identify(dir *os.File) (*dirID, error) {
	st, err := g.disk.Lstat(dir, ".")
	return &dirID{Inode: st.Inode, Born: st.Born}, err
}

// dirsNote is the entry of a stage that lists the directories of its changes.
const dirsNote = "in"

// maxDirsNote bounds the size of the note: that of the largest commit.
const maxDirsNote = lockkeeper.MaxTargets * (lockkeeper.MaxPathSize + 100)

// noteDirs stores the directories of a commit in the stage, so that recovery can follow
// one that was moved. The note need not survive a power failure, which also ends the
// programs that move directories.
func (s *stage) noteDirs(items []*item) error {
	dirs := map[string]dirID{}
	for _, it := range items {
		if it.dir != nil {
			parent, _ := split(it.target)
			dirs[parent] = *it.dir
		}
	}
	text, err := json.Marshal(dirs)
	if err != nil {
		return err
	}
	f, err := s.g.disk.Create(s.dir, s.entry(dirsNote))
	if err != nil {
		return err
	}
	return errors.Join(s.g.disk.Write(f, text), s.g.disk.Close(f))
}

// notedDirs reads the note. It returns an empty map if there is none.
func (s *stage) notedDirs() (map[string]dirID, error) {
	dirs := map[string]dirID{}
	f, err := s.g.disk.OpenFile(s.dir, s.entry(dirsNote))
	if err != nil {
		return dirs, unlessMissing(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxDirsNote {
		return dirs, err
	}
	if err := json.NewDecoder(f).Decode(&dirs); err != nil {
		return map[string]dirID{}, nil // a crash truncated the note, so recovery uses the paths alone
	}
	return dirs, nil
}

// An awayError says that a landing cannot be rolled back yet, because a directory in which
// it changed a file is not in the tree.
type awayError struct{ landing, path string }

func (e *awayError) Error() string {
	dir, name := path.Split(e.path)
	return lockkeeper.JoinNext(fmt.Sprintf("landing %s waits for the directory %s: it changed %s there, and the directory was moved away or removed",
		e.landing, path.Clean(dir), name), e.NextStep())
}

func (e *awayError) NextStep() string {
	return "move the directory back and run `lockkeeper gate recover`; if it is lost, run `lockkeeper gate recover --abandon " + e.landing + "`"
}

// maxHeld bounds how many directories one landing holds open. The landing finds
// other directories by the note in the stage.
const maxHeld = 500

// hold keeps the directory of a path open until the landing ends. So a change in it can be rolled
// back even if the directory is moved. It returns the directory to use and a function that releases
// it. If the landing has already used a different directory at the same path, hold returns a
// conflictError.
func (p *applier) hold(path string, dir *os.File) (use *os.File, release func(), err error) {
	parent, _ := split(path)
	closing := func() { dir.Close() } // nothing was written through the descriptor
	id, err := p.g.identify(dir)
	if err == nil {
		if before, ok := p.used[parent]; ok && !id.is(before) {
			err = &conflictError{path, movedAway}
		}
	}
	if err != nil {
		closing()
		return nil, nil, err
	}
	p.used[parent] = *id
	if before := p.held[parent]; before != nil {
		closing()
		return before, func() {}, nil
	}
	if len(p.held) == maxHeld {
		return dir, closing, nil
	}
	p.held[parent] = dir
	return dir, func() {}, nil
}

func (p *applier) close() {
	for _, dir := range p.held {
		dir.Close() // nothing was written through the descriptor
	}
	clear(p.held)
}

// dirOf returns the directory in which a path was changed. It tries the held directory, then the
// one at the path, then the one that was there when the commit began. The last one may have moved
// within the tree.
// If it finds none, it returns an *awayError.
func (p *applier) dirOf(path string) (dir *os.File, release func(), err error) {
	parent, _ := split(path)
	if dir := p.held[parent]; dir != nil {
		return dir, func() {}, nil
	}
	want, known := p.used[parent]
	if !known {
		noted, err := p.s.notedDirs()
		if err != nil {
			return nil, nil, err
		}
		want, known = noted[parent]
	}
	dir, _, err = p.g.openParent(path)
	switch {
	case err == nil:
		id, err := p.g.identify(dir)
		if err == nil && (!known || id.is(want)) {
			return dir, func() { dir.Close() }, nil
		}
		if err := errors.Join(err, dir.Close()); err != nil {
			return nil, nil, err
		}
	case !errors.Is(err, fs.ErrNotExist) && !isElsewhere(err):
		return nil, nil, err
	}
	if known {
		if dir, err = p.g.findDir(p.g.root, want, true); err != nil {
			return nil, nil, err
		}
		if dir != nil {
			p.held[parent] = dir
			return dir, func() {}, nil
		}
	}
	if fenced, err := p.s.isGone(); err != nil || fenced { // another recovery may have ended the landing
		return nil, nil, cmp.Or(err, errFenced)
	}
	return nil, nil, &awayError{itoa(p.l.Seq), path}
}

// findDir searches for a directory below another one and returns nil if it finds none. It
// skips directories that it cannot open, and those of git and Lockkeeper.
func (g *Gate) findDir(at *os.File, want dirID, top bool) (found *os.File, err error) {
	names, err := g.disk.List(at)
	if errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	if err != nil {
		return nil, unlessMissing(err)
	}
	for _, name := range names {
		if top && (name == stateDir || name == lockkeeper.GitTarget) {
			continue
		}
		st, err := g.disk.Lstat(at, name)
		if err != nil || !st.Mode.IsDir() {
			continue
		}
		dir, err := g.disk.OpenDir(at, name)
		if err != nil {
			continue
		}
		id, err := g.identify(dir)
		if err == nil && id.is(want) {
			return dir, nil
		}
		if err == nil {
			found, err = g.findDir(dir, want, false)
		}
		if err := errors.Join(err, dir.Close()); err != nil || found != nil {
			return found, err
		}
	}
	return nil, nil
}
