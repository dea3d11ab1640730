//go:build unix

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

// errChanged says that a file was written to, or replaced, while it was read.
var errChanged = errors.New("it changed while it was read")

// errReplaced says that a name is not any more what it was seen to be, so that there
// is nothing to read.
var errReplaced = fmt.Errorf("%w: it is something else now", errChanged)

// grain is coarser than the clock by which any disk dates its files: two writes
// that are no further apart may have one time.
const grain = 20 * time.Millisecond

// same reports whether nothing happened to a file between two looks, as far as
// the disk tells.
func (l look) same(m look) bool {
	return l.inode == m.inode && l.dev == m.dev && l.size == m.size && l.mode == m.mode && l.modified == m.modified && l.changed == m.changed
}

func (l look) hasHoles() bool { return l.blocks*512 < l.size }

// isYoung reports whether a later write could have the same time.
func (l look) isYoung(now time.Time) bool {
	return time.Unix(0, l.changed).Add(grain).After(now)
}

// means are what can spare reading a file.
type means struct {
	cloning
	sums *Sums
}

// copyFile makes a new file with the content, the time and the permissions of
// another one, which was seen before. On errChanged the copy is there, but of
// more than one moment; on errReplaced there is none.
func (h *hand) copyFile(from int, name string, seen look, to int, as string, m *means) (e entry, err error) {
	start := time.Now()
	in, err := openSeen(from, name)
	switch {
	case isGone(err): // or a link now
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
	after, err := lookFD(in)
	switch {
	case err != nil:
		return e, err
	case !after.same(seen):
		return e, errChanged
	}
	m.sums.remember(seen, start, e.Sum)
	return e, nil
}

// fill copies content in the cheapest way that also tells its hash.
func (h *hand) fill(in, out int, seen look, m *means) (sum [32]byte, err error) {
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

// finish gives a new file the time and the permissions of another one, and notes
// how it looks then.
func (e *entry) finish(dir int, name string, fd int, like look) error {
	if err := putTime(dir, name, like.modified); err != nil {
		return err
	}
	has, err := lookFD(fd)
	if err == nil && has.mode.Perm() != like.mode.Perm() {
		if err = unix.Fchmod(fd, uint32(like.mode.Perm())); err == nil {
			has, err = lookFD(fd)
		}
	}
	e.note(has)
	return err
}

// pour copies one file into another and hashes what passes. Where the source has
// holes, blocks of zeros become holes again.
func (h *hand) pour(in, out int, seen look) (sum [32]byte, err error) {
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

// hashFD hashes a file from its present position.
func (h *hand) hashFD(fd int, size int64) (sum [32]byte, err error) {
	err = h.each(fd, size, func([]byte) error { return nil })
	h.sum.Sum(sum[:0])
	return sum, err
}

// each reads a file to its end and hashes it. A part that ends where the file
// should end is taken for the last, which saves small files a system call.
func (h *hand) each(fd int, size int64, do func(part []byte) error) error {
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

// sumAt hashes a file that was seen, and fails with errChanged when it is not as
// it was seen.
func (h *hand) sumAt(dir int, name string, seen look) (sum [32]byte, err error) {
	fd, err := openSeen(dir, name)
	if err != nil {
		return sum, err
	}
	defer closeFD(fd)
	if sum, err = h.hashFD(fd, seen.size); err != nil {
		return sum, err
	}
	after, err := lookFD(fd)
	if err == nil && !after.same(seen) {
		err = errChanged
	}
	return sum, err
}

// openRegular opens a file to read it, if it is one.
func openRegular(dir int, name string) (int, error) {
	// Opening anything else may do something to it.
	if seen, err := lookAt(dir, name); err != nil {
		return -1, err
	} else if !seen.mode.IsRegular() {
		return -1, fs.ErrInvalid
	}
	return openSeen(dir, name)
}

// openSeen opens a file that was just seen to be one. What has taken its place since
// is not read: that may do something to it.
func openSeen(dir int, name string) (int, error) {
	fd, err := openAt(dir, name, unix.O_RDONLY, 0)
	if err != nil {
		return -1, err
	}
	seen, err := lookFD(fd)
	if err == nil && !seen.mode.IsRegular() {
		err = errReplaced
	}
	if err != nil {
		closeFD(fd)
		return -1, err
	}
	return fd, nil
}
