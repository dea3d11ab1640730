package rescue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"lockkeeper"
)

// Limits bounds how much space a shelf uses.
type Limits struct {
	Entry int64 // bytes of one entry; default: DefaultLimits
	Total int64 // bytes of all entries; default: DefaultLimits
}

// DefaultLimits returns the limits of a shelf without a configuration.
func DefaultLimits() Limits { return Limits{Entry: 1 << 30, Total: 8 << 30} }

func (l Limits) complete() Limits {
	d := DefaultLimits()
	if l.Entry <= 0 {
		l.Entry = d.Entry
	}
	if l.Total <= 0 {
		l.Total = d.Total
	}
	return l
}

// Limits returns the limits of the shelf.
func (s *Shelf) Limits() Limits { return s.limits }

// A LimitError says that content was not kept because it exceeds a limit of the shelf.
type LimitError struct {
	Reason string
	Next   string
}

func (e *LimitError) Error() string { return lockkeeper.JoinNext(e.Reason, e.Next) }

func (e *LimitError) NextStep() string { return e.Next }

func (e *LimitError) Code() lockkeeper.Code { return lockkeeper.CodeFailed }

// PutOrNote is Put for a caller that cannot keep the content itself. If the content
// exceeds a limit of the shelf, it puts an entry of the kind Noted, which says so.
func (s *Shelf) PutOrNote(ctx context.Context, e Entry, content io.Reader) (Entry, error) {
	kept, err := s.Put(ctx, e, content)
	limit, ok := errors.AsType[*LimitError](err)
	if !ok {
		return kept, err
	}
	e.Kind, e.Reason = Noted, e.Reason+"; its content is not kept: "+limit.Reason
	return s.PutUnlimited(ctx, e, strings.NewReader("The content is not kept: "+limit.Error()+"\n"))
}

// PutUnlimited is Put without limits, for content that exists nowhere else.
func (s *Shelf) PutUnlimited(ctx context.Context, e Entry, content io.Reader) (Entry, error) {
	return s.putNew(ctx, e, content, false)
}

// A room says how much space new content may use.
type room struct {
	limits Limits
	used   int64 // size of all entries
	space  int64 // free space on the disk
}

// unchecked is the size up to which the free space is not checked.
const unchecked = 1 << 20

// check refuses content if its first size bytes already exceed a limit.
func (r room) check(size int64) error {
	switch {
	case size > r.limits.Entry:
		return &LimitError{Reason: fmt.Sprintf("larger than %s, the limit for one file (gate.keep_file_mb)", megabytes(r.limits.Entry)),
			Next: "to keep such files, raise gate.keep_file_mb in lockkeeper.yaml"}
	case size > r.limits.Total-r.used:
		return &LimitError{Reason: fmt.Sprintf("the rescue shelf would hold more than %s (gate.keep_total_mb)", megabytes(r.limits.Total)),
			Next: "lockkeeper rescue list, then lockkeeper rescue drop ID"}
	case size > unchecked && size > r.space/2:
		return fmt.Errorf("%d bytes are more than half of the %d bytes free on the disk: %w", size, r.space, unix.ENOSPC)
	}
	return nil
}

func megabytes(n int64) string { return fmt.Sprintf("%d MB", n>>20) }

func (s *Shelf) measure(shelf *os.File) (r room, err error) {
	r.limits = s.limits
	ids, _, err := s.names(shelf)
	if err != nil {
		return r, err
	}
	for _, id := range ids {
		for _, name := range []string{contentName, baseName} {
			size, err := s.sizeOf(shelf, id, name)
			if err != nil {
				return r, err
			}
			r.used += size
		}
	}
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(shelf.Fd()), &st); err != nil {
		return r, err
	}
	r.space = int64(st.Bavail) * int64(st.Bsize)
	return r, nil
}

// sizeOf returns the size of a file of an entry; 0 if the entry is damaged or has no such file.
func (s *Shelf) sizeOf(shelf *os.File, id, name string) (size int64, err error) {
	dir, err := s.disk.OpenDir(shelf, id)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, fs.ErrPermission) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer s.closing(dir, &err)
	stat, err := s.disk.Lstat(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	return stat.Size, err
}

// sizeAhead returns the size of content that is a file; otherwise 0.
func sizeAhead(content io.Reader) int64 {
	file, ok := content.(interface{ Stat() (fs.FileInfo, error) })
	if !ok {
		return 0
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return info.Size()
}
