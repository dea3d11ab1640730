package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"lockkeeper/internal/machine/filelock"
)

// Limits bound one snapshot. Files that exceed them are not copied, and are reported as
// misses.
type Limits struct {
	Files     int           // number of files
	FileBytes int64         // size of one file
	Bytes     int64         // size of all files
	Time      time.Duration // time for reading states and copying
}

// DefaultLimits returns limits that are generous for hand-written files and small for a disk.
func DefaultLimits() Limits {
	return Limits{Files: 10_000, FileBytes: 32 << 20, Bytes: 256 << 20, Time: 3 * time.Second}
}

// A Candidate is a file whose content would be lost permanently if a command removed it.
type Candidate struct {
	Path    string // path from the root, with slashes
	Ignored bool   // git ignores the file: it is copied last, and only if it is small
}

// ignoredBytes limits the size of ignored files that are copied. Settings and keys are small;
// larger ignored files are mostly generated.
const ignoredBytes = 1 << 20

// A Miss is a candidate that could not be copied.
type Miss struct {
	Path string
	Why  string
}

// wanted is a candidate that needs a copy.
type wanted struct {
	Candidate
	found
}

// Take copies the candidates, small ones first, as far as the limits allow. skip says which
// files need no copy, by their path, state and time of birth. A snapshot without files is
// not stored and has no ID.
func (s *Store) Take(ctx context.Context, snap Snapshot, candidates []Candidate, l Limits, skip func(path string, is State, born int64) bool) (_ *Snapshot, missed []Miss, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.Time)
	defer cancel()
	list, missed := s.wanted(ctx, candidates, skip)
	if len(list) == 0 {
		return &snap, missed, nil
	}
	lock, err := s.lock()
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := filelock.Share(lock); err != nil {
		return nil, nil, err
	}
	snap.At = time.Now()
	id := fmt.Sprintf("%d-%d", snap.At.UnixNano(), os.Getpid())
	var size int64
	for _, w := range list {
		why := l.exceeded(w, len(snap.Files), size)
		if why == "" {
			f, fresh, err := s.keep(ctx, id, w)
			switch {
			case err == nil:
				snap.ID, snap.Files, snap.Grown = id, append(snap.Files, f), snap.Grown || fresh
				size += f.State.Size
				continue
			case errors.Is(err, fs.ErrNotExist):
				continue // the file was removed meanwhile
			case ctx.Err() != nil:
				why = fmt.Sprintf("copying took longer than %s", l.Time)
			default:
				why = "it cannot be copied: " + reason(err)
			}
		}
		if !w.Ignored {
			missed = append(missed, Miss{Path: w.Path, Why: why})
		}
	}
	if snap.ID == "" {
		return &snap, missed, nil
	}
	return &snap, missed, s.save(&snap)
}

// wanted returns the candidates that need a copy, in the order in which to copy them.
func (s *Store) wanted(ctx context.Context, candidates []Candidate, skip func(path string, is State, born int64) bool) (list []wanted, missed []Miss) {
	for _, c := range candidates {
		f, regular, err := stat(s.at(c.Path))
		switch {
		case ctx.Err() != nil:
			missed = append(missed, Miss{Path: c.Path, Why: "there are too many uncommitted files to examine in time"})
		case err != nil:
			missed = append(missed, Miss{Path: c.Path, Why: reason(err)})
		case regular && f.Size > 0 && !skip(c.Path, f.State, f.born):
			list = append(list, wanted{Candidate: c, found: f})
		}
	}
	slices.SortStableFunc(list, func(a, b wanted) int {
		if a.Ignored != b.Ignored {
			return cmp.Compare(rank(a), rank(b))
		}
		return cmp.Compare(a.Size, b.Size)
	})
	return list, missed
}

func rank(w wanted) int {
	if w.Ignored {
		return 1
	}
	return 0
}

// exceeded says which limit one more file would exceed, or returns "". files and size count
// the files that were already copied.
func (l Limits) exceeded(w wanted, files int, size int64) string {
	switch {
	case files >= l.Files:
		return fmt.Sprintf("there are more than %d uncommitted files", l.Files)
	case w.Size > l.FileBytes, w.Ignored && w.Size > ignoredBytes:
		return fmt.Sprintf("it is larger than %d MiB", l.FileBytes>>20)
	case size+w.Size > l.Bytes:
		return fmt.Sprintf("the uncommitted files are larger than %d MiB in all", l.Bytes>>20)
	}
	return ""
}

// reason returns the text of an error without the path, which the caller prints itself.
func reason(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}
