package rescue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockkeeper/durable"
)

// A Shelf is a directory of entries.
type Shelf struct {
	parent string
	name   string
	disk   durable.Disk
	limits Limits
	bases  Bases // nil: entries are kept without their bases
}

// Open returns the shelf in dir. The first Put creates the directory, whose parent must
// exist.
func Open(dir string, limits Limits) *Shelf {
	return &Shelf{parent: filepath.Dir(dir), name: filepath.Base(dir), disk: durable.OSDisk{}, limits: limits.complete()}
}

// Dir returns the directory of the shelf. Its modification time changes when an entry is added or
// dropped.
func (s *Shelf) Dir() string { return filepath.Join(s.parent, s.name) }

// List returns all entries, oldest first.
func (s *Shelf) List(ctx context.Context) (list []Entry, err error) {
	_, err = s.within(func(shelf *os.File) error {
		ids, _, err := s.names(shelf)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := ctx.Err(); err != nil {
				return err
			}
			e, err := s.read(shelf, id)
			if errors.Is(err, fs.ErrNotExist) {
				continue // the entry was dropped meanwhile
			}
			if err != nil {
				return err
			}
			list = append(list, e)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Get returns one entry.
func (s *Shelf) Get(id string) (e Entry, err error) {
	err = s.entry(id, func(shelf *os.File) (err error) {
		e, err = s.read(shelf, id)
		return err
	})
	return e, err
}

// Content opens the content of an entry, even if the rest of the entry is damaged.
func (s *Shelf) Content(id string) (content *os.File, err error) {
	err = s.entry(id, func(shelf *os.File) error {
		e, err := s.read(shelf, id)
		if err != nil {
			return err
		}
		content, err = s.openRegular(shelf, id, contentName)
		switch {
		case err == nil:
			return nil
		case e.Kind == Damaged:
			return refuse(id, "its content cannot be read: "+e.Reason)
		case e.Delete:
			return refuse(id, "it is a deletion and has no content")
		case e.Sum == "":
			return refuse(id, "it is a change of permissions and has no content")
		}
		return err
	})
	return content, err
}

// ContentPath returns the path of an entry's content, for messages.
func (s *Shelf) ContentPath(id string) string {
	return filepath.Join(s.parent, s.name, id, contentName)
}

// Drop removes an entry.
func (s *Shelf) Drop(id string) error {
	return s.entry(id, func(shelf *os.File) error {
		if _, err := s.disk.Lstat(shelf, id); err != nil {
			return err
		}
		_, err := s.discard(shelf, []string{id}, nil)
		return err
	})
}

// Prune drops entries that are older than the given time, and the remains of calls that crashed
// earlier. Every call of Put and Drop that began before that time must have ended.
func (s *Shelf) Prune(before time.Time) (dropped int, err error) {
	_, err = s.within(func(shelf *os.File) error {
		ids, temps, err := s.names(shelf)
		if err != nil {
			return err
		}
		later := func(name string) bool {
			at, _ := timeOf(strings.TrimPrefix(name, durable.TempPrefix))
			return !at.Before(before)
		}
		ids, temps = slices.DeleteFunc(ids, later), slices.DeleteFunc(temps, later)
		if len(ids)+len(temps) == 0 {
			return nil
		}
		dropped, err = s.discard(shelf, ids, temps)
		return err
	})
	return dropped, err
}

// within calls the function do with the open shelf. It returns false if the shelf does not exist.
func (s *Shelf) within(do func(shelf *os.File) error) (found bool, err error) {
	parent, err := os.Open(s.parent)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer s.closing(parent, &err)
	shelf, err := s.disk.OpenDir(parent, s.name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer s.closing(shelf, &err)
	return true, do(shelf)
}

// Find returns the id of the entry that a text names: the id, or the start of the id or of its last part, if no
// other entry has it.
func (s *Shelf) Find(ctx context.Context, text string) (string, error) {
	if _, ok := timeOf(text); ok {
		return text, nil
	}
	list, err := s.List(ctx)
	if err != nil {
		return "", err
	}
	var found []string
	for _, e := range list {
		if strings.HasPrefix(e.ID, text) || strings.HasPrefix(ShortID(e.ID), text) {
			found = append(found, e.ID)
		}
	}
	switch {
	case text == "" || len(found) == 0:
		return "", refuse(text, "not a rescue id")
	case len(found) > 1:
		return "", refuse(text, "ambiguous: "+strings.Join(found, ", "))
	}
	return found[0], nil
}

// ShortID returns the last part of an id, for people.
func ShortID(id string) string { return id[strings.LastIndexByte(id, '-')+1:] }

// entry does the same as within, for the entry with an id. It validates the id.
func (s *Shelf) entry(id string, do func(shelf *os.File) error) error {
	if _, ok := timeOf(id); !ok {
		return refuse(id, "not a rescue id")
	}
	found, err := s.within(do)
	if err == nil && !found || errors.Is(err, fs.ErrNotExist) {
		return refuse(id, "no such entry, or it was dropped")
	}
	return err
}

// names lists the entries, oldest first, and the temporary names. It ignores other files.
func (s *Shelf) names(shelf *os.File) (ids, temps []string, err error) {
	all, err := s.disk.List(shelf)
	slices.Sort(all)
	for _, name := range all {
		id, temporary := strings.CutPrefix(name, durable.TempPrefix)
		if _, ok := timeOf(id); !ok {
			continue
		}
		if temporary {
			temps = append(temps, name)
		} else {
			ids = append(ids, id)
		}
	}
	return ids, temps, err
}

// read returns an entry, damaged or not; fs.ErrNotExist if it was dropped.
func (s *Shelf) read(shelf *os.File, id string) (Entry, error) {
	e, err := s.readMeta(shelf, id)
	if err == nil {
		err = s.checkContent(shelf, id, e)
	}
	if err == nil {
		return e, nil
	}
	if _, gone := s.disk.Lstat(shelf, id); gone != nil { // the entry was dropped meanwhile
		return Entry{}, gone
	}
	at, _ := timeOf(id)
	if e.ID == "" {
		e.At = at
	}
	e.ID, e.Kind, e.Reason = id, Damaged, "damaged: "+err.Error()
	return e, nil
}

func (s *Shelf) readMeta(shelf *os.File, id string) (e Entry, err error) {
	f, err := s.openRegular(shelf, id, metaName)
	if err != nil {
		return Entry{}, err
	}
	defer s.closing(f, &err)
	data, err := io.ReadAll(io.LimitReader(f, maxMeta+2))
	if err != nil {
		return Entry{}, err
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return Entry{}, fmt.Errorf("%s: %w", metaName, err)
	}
	if e.ID != id {
		return Entry{}, fmt.Errorf("%s belongs to another entry, %q", metaName, e.ID)
	}
	return e, nil
}

// checkContent compares only the size, so that listing large entries is fast. A caller that
// reads the content can compare Sum.
func (s *Shelf) checkContent(shelf *os.File, id string, e Entry) (err error) {
	if e.Sum == "" {
		return nil
	}
	f, err := s.openRegular(shelf, id, contentName)
	if err != nil {
		return err
	}
	defer s.closing(f, &err)
	info, err := f.Stat()
	if err == nil && info.Size() != e.Size {
		err = fmt.Errorf("%s has %d bytes instead of %d", contentName, info.Size(), e.Size)
	}
	return err
}

// openRegular opens a file of an entry and refuses anything that is not a regular file.
func (s *Shelf) openRegular(shelf *os.File, id, name string) (*os.File, error) {
	dir, err := s.disk.OpenDir(shelf, id)
	if err != nil {
		return nil, err
	}
	f, err := s.disk.OpenFile(dir, name)
	err = errors.Join(err, s.disk.Close(dir))
	if f == nil {
		return nil, err
	}
	if info, failed := f.Stat(); failed != nil {
		err = errors.Join(err, failed)
	} else if !info.Mode().IsRegular() {
		err = errors.Join(err, fmt.Errorf("%s is not a regular file", name))
	}
	if err != nil {
		return nil, errors.Join(err, s.disk.Close(f))
	}
	return f, nil
}

// discard removes entries and temporary directories. It first renames entries to temporary
// names and syncs that, so that a crash leaves no partial entry.
func (s *Shelf) discard(shelf *os.File, ids, temps []string) (dropped int, err error) {
	for _, id := range ids {
		temp := durable.TempPrefix + id
		moved := s.disk.Move(shelf, id, shelf, temp)
		if errors.Is(moved, fs.ErrNotExist) {
			continue // another process dropped the entry
		}
		if moved != nil {
			err = errors.Join(err, moved)
			continue
		}
		dropped++
		temps = append(temps, temp)
	}
	if failed := s.disk.Sync(shelf); failed != nil {
		return dropped, errors.Join(err, failed)
	}
	for _, temp := range temps {
		err = errors.Join(err, s.clear(shelf, temp))
	}
	return dropped, errors.Join(err, s.disk.Sync(shelf))
}

// clear removes a file or directory with its content. It may be missing.
func (s *Shelf) clear(at *os.File, name string) error {
	err := s.clearPresent(at, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (s *Shelf) clearPresent(at *os.File, name string) error {
	stat, err := s.disk.Lstat(at, name)
	if err != nil {
		return err
	}
	if !stat.Mode.IsDir() {
		return s.disk.Remove(at, name)
	}
	if err := s.empty(at, name); err != nil {
		return err
	}
	return s.disk.RemoveDir(at, name)
}

func (s *Shelf) empty(at *os.File, name string) (err error) {
	dir, err := s.disk.OpenDir(at, name)
	if err != nil {
		return err
	}
	defer s.closing(dir, &err)
	names, err := s.disk.List(dir)
	for _, name := range names {
		err = errors.Join(err, s.clear(dir, name))
	}
	return err
}
