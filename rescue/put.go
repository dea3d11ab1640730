package rescue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"time"

	"lockkeeper"
	"lockkeeper/durable"
)

// The files of an entry.
const (
	metaName    = "meta.json"
	contentName = "content"
	baseName    = "base" // content of the version that the entry's content was based on; optional
)

// maxMeta bounds the size of meta.json.
const maxMeta = 1 << 20

const chunk = 256 << 10

// Put keeps content and its description e. It returns the entry with a new ID, and with At,
// Size and Sum. At is the current time unless e sets it. content is nil for a deletion and
// for a change of permissions. Canceling ctx stops Put if the entry is not in place yet.
//
// If Put returns an error and an entry with an ID, the entry is in place but may not survive
// a crash. After any other error nothing was kept. If the content exceeds a limit of the
// shelf, the error is a *LimitError. If the disk has too little space, it is unix.ENOSPC.
// If the content is a file, both are checked before anything is written.
func (s *Shelf) Put(ctx context.Context, e Entry, content io.Reader) (Entry, error) {
	return s.putNew(ctx, e, content, true)
}

func (s *Shelf) putNew(ctx context.Context, e Entry, content io.Reader, bounded bool) (Entry, error) {
	if e.At.IsZero() {
		e.At = time.Now()
	}
	e.At = e.At.Round(0).UTC()
	e.ID, e.Size, e.Sum = newID(e.At), 0, ""
	if _, ok := timeOf(e.ID); !ok {
		return Entry{}, &lockkeeper.InputError{Field: "time", Value: e.At.String(), Reason: "outside the years that an id supports"}
	}
	if e.Delete {
		content = nil
	}
	placed, err := s.put(ctx, &e, content, bounded)
	switch {
	case err == nil:
		return e, nil
	case placed:
		return e, fmt.Errorf("rescue %s: %w; entry %s is in place but may not survive a crash", e.Path, err, e.ID)
	}
	return Entry{}, fmt.Errorf("rescue %s: %w; nothing was kept", e.Path, err)
}

func (s *Shelf) put(ctx context.Context, e *Entry, content io.Reader, bounded bool) (placed bool, err error) {
	if err := s.make(); err != nil {
		return false, err
	}
	found, err := s.within(func(shelf *os.File) error {
		check := func(int64) error { return nil }
		if bounded && content != nil {
			room, err := s.measure(shelf)
			if err != nil {
				return err
			}
			if err := room.check(sizeAhead(content)); err != nil {
				return err
			}
			check = room.check
		}
		temp := durable.TempPrefix + e.ID
		if err := s.disk.Mkdir(shelf, temp, 0o700); err != nil {
			return err
		}
		err := s.fill(ctx, shelf, temp, e, content, check)
		if err == nil {
			err = s.disk.Move(shelf, temp, shelf, e.ID)
		}
		if err != nil {
			return errors.Join(err, s.clear(shelf, temp))
		}
		placed = true
		return s.disk.Sync(shelf)
	})
	if err == nil && !found {
		err = fmt.Errorf("another process removed %s at the same time", s.name)
	}
	return placed, err
}

// make creates the shelf if it is missing. It always syncs the parent directory, because the
// process that created the shelf may have crashed before doing so.
func (s *Shelf) make() (err error) {
	parent, err := os.Open(s.parent)
	if err != nil {
		return err
	}
	defer s.closing(parent, &err)
	if err := s.disk.Mkdir(parent, s.name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return s.disk.Sync(parent)
}

// fill writes both files of an entry and makes them and their names durable.
func (s *Shelf) fill(ctx context.Context, shelf *os.File, temp string, e *Entry, content io.Reader, check func(size int64) error) (err error) {
	dir, err := s.disk.OpenDir(shelf, temp)
	if err != nil {
		return err
	}
	defer s.closing(dir, &err)
	if content != nil {
		sum := sha256.New()
		err := s.write(dir, contentName, func(f *os.File) (err error) {
			to := &sink{ctx: ctx, disk: s.disk, file: f, sum: sum, check: check}
			e.Size, err = io.CopyBuffer(to, struct{ io.Reader }{content}, make([]byte, chunk)) // hides other methods of content, so that Write is called with chunks
			return err
		})
		if err != nil {
			return err
		}
		e.Sum = hex.EncodeToString(sum.Sum(nil))
	}
	if err := s.keepBase(ctx, dir, e); err != nil {
		return err
	}
	meta, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return err
	}
	if len(meta) > maxMeta {
		return &lockkeeper.InputError{Field: "path and reason", Value: e.Path, Reason: fmt.Sprintf("together longer than %d bytes", maxMeta)}
	}
	if err := s.write(dir, metaName, func(f *os.File) error { return s.disk.Write(f, append(meta, '\n')) }); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.disk.Sync(dir)
}

// write creates a file and syncs it.
func (s *Shelf) write(dir *os.File, name string, fill func(*os.File) error) (err error) {
	f, err := s.disk.Create(dir, name)
	if err != nil {
		return err
	}
	defer s.closing(f, &err)
	if err := fill(f); err != nil {
		return err
	}
	return s.disk.Sync(f)
}

// closing closes a file and adds its error to err, for use with defer.
func (s *Shelf) closing(f *os.File, err *error) { *err = errors.Join(*err, s.disk.Close(f)) }

// A sink writes and hashes content until its context ends or check fails.
type sink struct {
	ctx   context.Context
	disk  durable.Disk
	file  *os.File
	sum   hash.Hash
	size  int64
	check func(size int64) error
}

func (k *sink) Write(data []byte) (int, error) {
	if err := k.ctx.Err(); err != nil {
		return 0, err
	}
	if err := k.check(k.size + int64(len(data))); err != nil {
		return 0, err
	}
	k.size += int64(len(data))
	if err := k.disk.Write(k.file, data); err != nil {
		return 0, err
	}
	k.sum.Write(data)
	return len(data), nil
}
