package tree

import (
	"errors"
	"io/fs"
	"slices"

	"golang.org/x/sys/unix"
)

// A position is the current directory of a walk, or the closest existing parent of a
// directory that does not exist yet.
type position struct {
	root     *Root
	fd       int
	borrowed bool // fd is the descriptor of the root, which must stay open
	missing  bool
	asked    bool // asked is true once folds is known
	folding  bool
}

func (p *position) close() {
	if !p.borrowed {
		unix.Close(p.fd)
	}
}

// folds reports whether names here fold case. A new directory inherits this from its
// parent.
func (p *position) folds() (bool, error) {
	if !p.asked {
		folding, err := p.root.folds(p.fd)
		if err != nil {
			return false, err
		}
		p.asked, p.folding = true, folding
	}
	return p.folding, nil
}

// nameOf returns the canonical spelling of a segment in this directory.
func (p *position) nameOf(seg string) (string, error) {
	if isPlain(seg) {
		return seg, nil
	}
	folds, err := p.folds()
	if err != nil || !folds {
		return seg, err
	}
	name, err := foldName(seg)
	if err != nil || name == seg || p.missing {
		return name, err
	}
	return name, p.checkFolded(seg, name)
}

// checkFolded refuses a folded name that is not the same file as the original on this disk.
// Disks differ in how they fold case, and the gate writes to the folded name.
func (p *position) checkFolded(seg, name string) error {
	a, errA := statAt(p.fd, seg)
	b, errB := statAt(p.fd, name)
	goneA, goneB := errors.Is(errA, unix.ENOENT), errors.Is(errB, unix.ENOENT)
	apart := &nameError{reason: "this disk distinguishes it from " + name + ", its folded name", next: "rename the file to " + name}
	switch {
	case goneA && goneB:
		return nil
	case goneA || goneB:
		return apart
	case errA != nil || errB != nil:
		return errors.Join(errA, errB)
	case a.sameFile(b):
		return nil
	}
	// FUSE may report a new inode for each spelling, but it lists two files as two
	// names.
	names, err := list(p.fd)
	if err != nil {
		return err
	}
	if slices.Contains(names, seg) && slices.Contains(names, name) {
		return apart
	}
	return nil
}

// reasonOf returns an error of package os without its operation and path.
func reasonOf(err error) string {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		err = at.Err
	}
	return err.Error()
}

func readlinkAt(fd int, name string) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, name, buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}
