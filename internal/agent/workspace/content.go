package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"
)

// errChanged reports that a file was changed or replaced while it was read.
var errChanged = errors.New("it changed while it was read")

// errWhiteout reports that a name of a layer was removed.
var errWhiteout = errors.New("it was removed")

// errReplaced reports that a file was replaced before it was read.
var errReplaced = fmt.Errorf("%w: it was replaced", errChanged)

// grain is coarser than the clock of any disk: two writes within it may have the same time.
const grain = 20 * time.Millisecond

// same reports whether two stats of a file are equal.
func (l fileStat) same(m fileStat) bool {
	return l.inode == m.inode && l.dev == m.dev && l.size == m.size && l.mode == m.mode && l.modified == m.modified && l.changed == m.changed
}

func (l fileStat) hasHoles() bool { return l.blocks*512 < l.size }

// isYoung reports whether a later write could have the same time.
func (l fileStat) isYoung(now time.Time) bool {
	return time.Unix(0, l.changed).Add(grain).After(now)
}

// A means lists the ways in which a copy can avoid reading a file.
type means struct {
	cloning
	sums *Sums
}

// copyFile creates a file with the content, time and permissions of another one. If it
// returns errChanged, the copy exists but may mix old and new content. If it returns
// errReplaced, there is no copy.
func (h *worker) copyFile(from int, name string, seen fileStat, to int, as string, m *means) (e entry, err error) {
	start := time.Now()
	in, err := openSeen(from, name)
	switch {
	case isGone(err): // the file is gone, or became a link
		return e, errReplaced
	case err != nil:
		return e, err
	}
	defer closeFD(in)
	out, err := openAt(to, as, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, seen.mode.Perm())
	if err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, unix.Close(out)) }()
	if e.Sum, err = h.fill(in, out, seen, m); err != nil {
		return e, err
	}
	if err := e.finish(to, as, out, seen); err != nil {
		return e, err
	}
	after, err := statFD(in)
	switch {
	case err != nil:
		return e, err
	case !after.same(seen):
		return e, errChanged
	}
	m.sums.remember(seen, start, e.Sum)
	return e, nil
}

// fill copies content in the cheapest way that also gives its hash.
func (h *worker) fill(in, out int, seen fileStat, m *means) (sum [32]byte, err error) {
	sum, known := m.sums.find(seen)
	cloned, err := m.try(in, out)
	switch {
	case err != nil || cloned && known:
		return sum, err
	case cloned:
		return h.hashFD(out, seen.size)
	case known && !seen.hasHoles():
		if moved, err := moveContent(in, out, seen.size); moved || err != nil {
			return sum, err
		}
	}
	return h.pour(in, out, seen)
}

// finish sets the time and the permissions of a new file, and records its stat.
func (e *entry) finish(dir int, name string, fd int, like fileStat) error {
	if err := putTime(dir, name, like.modified); err != nil {
		return err
	}
	has, err := statFD(fd)
	if err == nil && has.mode.Perm() != like.mode.Perm() {
		if err = unix.Fchmod(fd, uint32(like.mode.Perm())); err == nil {
			has, err = statFD(fd)
		}
	}
	e.note(has)
	return err
}

// pour copies a file and hashes its content. If the source has holes, blocks of zeros become
// holes.
func (h *worker) pour(in, out int, seen fileStat) (sum [32]byte, err error) {
	holes := seen.hasHoles()
	var at int64
	skipped := false
	err = h.each(in, seen.size, func(part []byte) error {
		at += int64(len(part))
		if skipped = holes && isZero(part); skipped {
			_, err := unix.Seek(out, int64(len(part)), unix.SEEK_CUR)
			return err
		}
		return writeAll(out, part)
	})
	if err == nil && skipped {
		err = unix.Ftruncate(out, at)
	}
	h.sum.Sum(sum[:0])
	return sum, err
}

// hashFD hashes a file from its current position.
func (h *worker) hashFD(fd int, size int64) (sum [32]byte, err error) {
	err = h.each(fd, size, func([]byte) error { return nil })
	h.sum.Sum(sum[:0])
	return sum, err
}

// each reads and hashes a file. It treats a part that reaches the expected size as the last
// one, which saves a system call.
func (h *worker) each(fd int, size int64, do func(part []byte) error) error {
	h.sum.Reset()
	buf := h.room(size)
	var at int64
	for {
		if h.ctx.Err() != nil {
			return context.Cause(h.ctx)
		}
		n, err := readSome(fd, buf)
		if err != nil || n == 0 {
			return err
		}
		h.sum.Write(buf[:n])
		if err := do(buf[:n]); err != nil {
			return err
		}
		if at += int64(n); n < len(buf) && at == size {
			return nil
		}
	}
}

func readSome(fd int, buf []byte) (n int, err error) {
	err = untilDone(func() (err error) {
		n, err = unix.Read(fd, buf)
		return err
	})
	return n, err
}

func writeAll(fd int, data []byte) error {
	for len(data) > 0 {
		var n int
		err := untilDone(func() (err error) {
			n, err = unix.Write(fd, data)
			return err
		})
		if err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

func isZero(data []byte) bool {
	return len(data) > 0 && data[0] == 0 && bytes.Equal(data[:len(data)-1], data[1:])
}

// sumAt hashes a file. It returns errChanged if the stat is not the given one.
func (h *worker) sumAt(dir int, name string, seen fileStat) (sum [32]byte, err error) {
	fd, err := openSeen(dir, name)
	if err != nil {
		return sum, err
	}
	defer closeFD(fd)
	if sum, err = h.hashFD(fd, seen.size); err != nil {
		return sum, err
	}
	after, err := statFD(fd)
	if err == nil && !after.same(seen) {
		err = errChanged
	}
	return sum, err
}

// openRegular opens a regular file for reading.
func openRegular(dir int, name string) (int, error) {
	// Opening a device may have effects.
	if seen, err := statAt(dir, name); err != nil {
		return -1, err
	} else if !seen.mode.IsRegular() {
		return -1, fs.ErrInvalid
	}
	return openSeen(dir, name)
}

// openSeen opens a regular file with a known stat. It does not read a file that replaced it.
func openSeen(dir int, name string) (int, error) {
	fd, err := openAt(dir, name, unix.O_RDONLY, 0)
	if err != nil {
		return -1, err
	}
	seen, err := statFD(fd)
	if err == nil && !seen.mode.IsRegular() {
		err = errReplaced
	}
	if err != nil {
		closeFD(fd)
		return -1, err
	}
	return fd, nil
}
