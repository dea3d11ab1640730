package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper/internal/machine/disk"
)

// An origin is the shared tree, opened for reading. Several goroutines may use it.
type origin struct {
	fd    int
	means means

	mu       sync.Mutex
	oddities []Oddity
	doubts   []string // files that may have changed unnoticed while they were copied
}

func openOrigin(root string, sums *Sums) (*origin, error) {
	fd, err := openAt(unix.AT_FDCWD, root, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, pathError("open", root, err)
	}
	return &origin{fd: fd, means: means{sums: sums}}, nil
}

func (o *origin) close() { closeFD(o.fd) }

// at calls the function do with the directory and the name of a path in the shared tree.
func (o *origin) at(p string, do func(dir int, name string) error) error {
	parent, name := split(p)
	dir, err := openFolder(o.fd, parent, true)
	if err != nil {
		return err
	}
	defer closeFD(dir)
	return do(dir, name)
}

func (o *origin) report(path, what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.oddities = append(o.oddities, Oddity{path, what})
}

// doubt marks a path to be copied again.
func (o *origin) doubt(path string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.doubts = append(o.doubts, path)
}

// sumAt returns the hash of a file of the shared tree with a given stat.
func (o *origin) sumAt(h *worker, dir int, name string, seen fileStat) ([32]byte, error) {
	start := time.Now()
	if sum, known := o.means.sums.find(seen); known {
		return sum, nil
	}
	sum, err := h.sumAt(dir, name, seen)
	if err == nil {
		o.means.sums.remember(seen, start, sum)
	}
	return sum, err
}

// copyTries bounds how often a changing file is copied.
const copyTries = 8

// copyName copies one name. The argument at is its path in the tree. For a directory it only
// returns the node. It returns nil if the name is missing or cannot be copied.
func (o *origin) copyName(h *worker, from int, name string, to int, as, at string) (*node, error) {
	for try := 1; ; try++ {
		seen, err := statAt(from, name)
		var n *node
		switch {
		case isGone(err):
			return nil, nil
		case err != nil:
		case seen.mode.IsDir():
			return newFolder(seen.mode), nil
		case seen.mode.Type() == fs.ModeSymlink:
			n, err = o.copyLink(from, name, seen, to, as, at)
		case seen.mode.IsRegular():
			n, err = o.copyRegular(h, from, name, seen, to, as, at)
		default:
			o.report(at, "not copied: neither a file, a directory nor a link")
			return nil, nil
		}
		switch {
		case err == nil:
			return n, nil
		case errors.Is(err, errChanged) && try == copyTries:
			o.report(at, fmt.Sprintf("it changed while it was copied, %d times", copyTries))
			if errors.Is(err, errReplaced) {
				return nil, nil
			}
			return n, nil
		case errors.Is(err, errReplaced):
		case errors.Is(err, errChanged):
			if err := unix.Unlinkat(to, as, 0); err != nil {
				return nil, pathError("remove", at, err)
			}
		case isClosed(err):
			o.report(at, "not copied: "+disk.Reason(err))
			return nil, nil
		default:
			return nil, pathError("copy", at, err)
		}
	}
}

func (o *origin) copyRegular(h *worker, from int, name string, seen fileStat, to int, as, at string) (*node, error) {
	start := time.Now()
	if seen.isYoung(start) {
		o.doubt(at)
	}
	e, err := h.copyFile(from, name, seen, to, as, &o.means)
	e.Origin = settled(seen, start)
	return &node{entry: e}, err
}

func (o *origin) copyLink(from int, name string, seen fileStat, to int, as, at string) (*node, error) {
	text, err := readLink(from, name)
	switch {
	case isGone(err), errors.Is(err, unix.EINVAL): // the name is no longer a link
		return nil, errReplaced
	case err != nil:
		return nil, err
	}
	if leadsOut(at, text) {
		o.report(at, "a link that leads out of the codebase, to "+text)
	}
	n, err := makeLink(to, as, text)
	if err == nil {
		n.Origin = stampOf(seen)
	}
	return n, err
}

func makeLink(to int, as, text string) (*node, error) {
	if err := unix.Symlinkat(text, to, as); err != nil {
		return nil, fmt.Errorf("make a link: %w", err)
	}
	has, err := statAt(to, as)
	n := &node{entry: entry{Link: text}}
	n.note(has)
	return n, err
}

// leadsOut reports whether the text of a link leads out of the root.
func leadsOut(at, text string) bool {
	if filepath.IsAbs(text) {
		return true
	}
	to := path.Join(path.Dir(at), text)
	return to == ".." || strings.HasPrefix(to, "../")
}

// Sums caches the hashes of files of a shared tree, so that only the first of many
// workspaces reads the files that it copies. A nil *Sums caches nothing.
//
// A file is identified by its stat, and cached only if it has not changed for a minute. So no write
// can have the same time on the disk's clock. A write through mapped memory is visible too: it gets
// its time when it is written back.
type Sums struct {
	rest time.Duration

	mu    sync.RWMutex
	known map[fileID]rested
}

type fileID struct{ dev, inode uint64 }

// A rested is a file that has not changed for a while.
type rested struct {
	size, modified, changed int64
	sum                     [32]byte
}

// NewSums returns an empty cache for any number of trees and workspaces.
func NewSums() *Sums { return &Sums{rest: time.Minute, known: map[fileID]rested{}} }

// maxSums bounds the cache to about 100 MB.
const maxSums = 1_000_000

// find returns the hash of a file whose stat has not changed since it was read.
func (s *Sums) find(seen fileStat) (sum [32]byte, known bool) {
	if s == nil {
		return sum, false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	r, ok := s.known[fileID{seen.dev, seen.inode}]
	return r.sum, ok && r.size == seen.size && r.modified == seen.modified && r.changed == seen.changed
}

// remember caches the hash of a file that has not changed since it was seen.
func (s *Sums) remember(seen fileStat, at time.Time, sum [32]byte) {
	if s == nil || at.Sub(time.Unix(0, seen.changed)) < s.rest {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= maxSums {
		clear(s.known) // most entries are of files that no longer exist
	}
	s.known[fileID{seen.dev, seen.inode}] = rested{seen.size, seen.modified, seen.changed, sum}
}
