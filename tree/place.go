//go:build unix

package tree

import (
	"errors"
	"io/fs"
	"slices"

	"golang.org/x/sys/unix"
)

// place is the directory a walk stands in: open, or the last open one above a
// directory that does not exist yet.
type place struct {
	root     *Root
	fd       int
	borrowed bool // fd is the root's
	missing  bool
	asked    bool // folding is known
	folding  bool
}

func (p *place) moveTo(fd int) {
	p.close()
	*p = place{root: p.root, fd: fd}
}

func (p *place) close() {
	if !p.borrowed {
		unix.Close(p.fd)
	}
}

// folds reports whether names here fold case. A new directory will fold as the
// one it is made in does.
func (p *place) folds() (bool, error) {
	if !p.asked {
		folding, err := p.root.folds(p.fd)
		if err != nil {
			return false, err
		}
		p.asked, p.folding = true, folding
	}
	return p.folding, nil
}

// nameOf gives a segment the one spelling it has in this directory.
func (p *place) nameOf(seg string) (string, error) {
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
	return name, p.checkSame(seg, name)
}

// checkSame refuses a folded name that this disk does not take for the name it
// was folded from: disks differ in how they fold, and the target's name is the
// one that will be written.
func (p *place) checkSame(seg, name string) error {
	a, errA := statAt(p.fd, seg)
	b, errB := statAt(p.fd, name)
	goneA, goneB := errors.Is(errA, unix.ENOENT), errors.Is(errB, unix.ENOENT)
	apart := &nameError{reason: "this disk tells it apart from " + name + ", its name without case", next: "rename the file to " + name}
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
	// FUSE may number a file anew for each spelling. Two files are listed twice.
	names, err := list(p.fd)
	if err != nil {
		return err
	}
	if slices.Contains(names, seg) && slices.Contains(names, name) {
		return apart
	}
	return nil
}

// reasonOf is the plain reason in an error of package os.
func reasonOf(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err.Error()
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
