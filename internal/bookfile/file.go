package bookfile

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/durable"
)

const (
	dirPerm  = 0o755
	filePerm = 0o644

	maxSize  = 1 << 20         // more than any book has
	settling = 2 * time.Second // a foreign writer is given, that is in the middle of the file
	glance   = 10 * time.Millisecond
	rounds   = 100 // of a change in which foreign writers come between every time
)

// File is one lock file.
type File struct {
	root string // a directory that nothing is written outside of
	name string // the path from there
	disk durable.Disk
}

// Open names a lock file by its path from a root. It is made, with its directory, by the
// first change.
func Open(root, name string) *File { return &File{root: root, name: name, disk: durable.OSDisk{}} }

// Path is where the file is.
func (f *File) Path() string { return filepath.Join(f.root, f.name) }

// Reading is what was found in the file.
type Reading struct {
	Entries []Entry
	Known   bool     // a whole file was there: what is not in Entries is not locked by a foreign tool
	Corrupt *Corrupt // nil: nothing was wrong with it
}

// Corrupt is what became of a file that could not be understood.
type Corrupt struct {
	Reason string
	Backup string // where it is now
	Saved  int    // entries that could be read
}

// Update reads the file, lets change say what it is to hold, and writes that, under
// the guard. What a foreign tool wrote between the reading and the writing is put
// back into the file first, and then change is asked once more: it is told of nothing
// that does not stand there.
func (f *File) Update(ctx context.Context, change func(Reading) ([]Entry, error)) (err error) {
	dir, leave, err := f.enter(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, leave()) }()
	var lost amends
	for range rounds {
		text, read, err := f.read(ctx, dir)
		if err != nil {
			return err
		}
		lost.corrupt = cmp.Or(read.Corrupt, lost.corrupt)
		mending := !lost.none()
		entries := lost.applied(read.Entries)
		if !mending {
			read.Corrupt = lost.corrupt
			if entries, err = change(read); err != nil {
				return err
			}
		}
		whole, err := f.write(ctx, dir, text, read.Entries, Encode(entries), &lost)
		switch {
		case err != nil:
			return err
		case whole && !mending:
			return nil
		case whole:
			lost.came, lost.went = nil, nil
		}
	}
	return f.trouble(fmt.Sprintf("a foreign tool wrote it %d times while it was to be changed", rounds), nil)
}

// amends is what a foreign tool changed in a file that was then replaced.
type amends struct {
	came, went []Entry
	corrupt    *Corrupt
}

func (m *amends) none() bool { return len(m.came)+len(m.went) == 0 }

func (m *amends) applied(entries []Entry) []Entry {
	return slices.DeleteFunc(slices.Concat(entries, m.came), func(e Entry) bool { return slices.Contains(m.went, e) })
}

// write replaces the text that was read by another one. It is not whole when a foreign
// tool came between; lost has then what that one changed.
func (f *File) write(ctx context.Context, dir *os.File, text []byte, read []Entry, want []byte, lost *amends) (whole bool, err error) {
	switch {
	case bytes.Equal(want, text):
		return true, nil
	case len(want) > maxSize: // nobody could read it afterwards, and so nobody give anything back
		return false, &lockkeeper.StoreError{Store: f.Path(), Reason: fmt.Sprintf("it would have %d bytes, over the limit of %d", len(want), maxSize),
			Next: "give back or clear what nobody needs: lockkeeper claim status"}
	}
	replaced, err := f.replace(dir, text, want)
	switch {
	case errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, errChanged):
		return false, nil
	case err != nil:
		return false, f.trouble("cannot be written", err)
	case text == nil:
		return true, nil
	}
	after, err := f.takeReplaced(ctx, dir, replaced)
	if err != nil {
		return false, err
	}
	came, went := apart(read, after.Entries)
	if after.Corrupt != nil { // what it lacks may be what could not be read
		went, lost.corrupt = nil, after.Corrupt
	}
	lost.came, lost.went = append(lost.came, came...), append(lost.went, went...)
	return len(came)+len(went) == 0 && after.Corrupt == nil, nil
}

func (f *File) read(ctx context.Context, dir *os.File) (text []byte, r Reading, err error) {
	return f.readAs(ctx, dir, filepath.Base(f.name))
}

// readAs reads the file under a name; no text: there is none. One that cannot be
// understood is moved aside, after it had the time to become whole.
func (f *File) readAs(ctx context.Context, dir *os.File, name string) (text []byte, r Reading, err error) {
	text, entries, err := f.whole(ctx, dir, name)
	var corrupt *CorruptError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, Reading{}, nil
	case errors.As(err, &corrupt) && corrupt.Other && name == filepath.Base(f.name): // somebody else's, and not ours to move
		return nil, r, f.trouble("is JSON, and no file of locks", nil)
	case errors.As(err, &corrupt):
		r = Reading{Entries: entries, Corrupt: &Corrupt{Reason: corrupt.Reason, Saved: len(entries)}}
		r.Corrupt.Backup, err = f.setAside(dir, name)
		if errors.Is(err, fs.ErrNotExist) { // taken away at this moment
			return nil, Reading{}, nil
		}
		return nil, r, err
	case err != nil:
		reason := "cannot be read"
		if what := otherThan(0, filepath.Join(filepath.Dir(f.Path()), name)); what != "" {
			reason += ", for it is " + what
		}
		return nil, r, f.trouble(reason, err)
	}
	return text, Reading{Entries: entries, Known: true}, nil
}

// whole reads a file in the directory, and gives one that is being written the time
// to become whole.
func (f *File) whole(ctx context.Context, dir *os.File, name string) (text []byte, entries []Entry, err error) {
	for limit := time.Now().Add(settling); ; {
		modified := time.Time{}
		if text, modified, err = f.load(dir, name); err != nil {
			return nil, nil, err
		}
		entries, err = Decode(text)
		age := time.Since(modified)
		if err == nil || age > settling || time.Now().After(limit) {
			return text, entries, err
		}
		if err := sleep(ctx, glance); err != nil {
			return nil, nil, err
		}
	}
}

// load reads a regular file of a sane size. The text is not nil.
func (f *File) load(dir *os.File, name string) (text []byte, modified time.Time, err error) {
	file, err := f.disk.OpenFile(dir, name)
	if err != nil {
		return nil, modified, err
	}
	defer func() { err = errors.Join(err, f.disk.Close(file)) }()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, modified, err
	case !info.Mode().IsRegular():
		return nil, modified, errors.New("it is no regular file")
	case info.Size() > maxSize:
		return nil, modified, fmt.Errorf("it has %d bytes, over the limit of %d", info.Size(), maxSize)
	}
	text, err = io.ReadAll(io.LimitReader(file, maxSize))
	return text, info.ModTime(), err
}

// setAside moves a file that cannot be understood to a name of its own.
func (f *File) setAside(dir *os.File, name string) (backup string, err error) {
	as := filepath.Base(f.name) + ".corrupt." + time.Now().UTC().Format("20060102T150405Z")
	for n, first := 2, as; ; n++ {
		err := f.disk.Move(dir, name, dir, as)
		if !errors.Is(err, fs.ErrExist) {
			return filepath.Join(filepath.Dir(f.Path()), as), err
		}
		as = fmt.Sprintf("%s-%d", first, n)
	}
}

// errChanged says that a file is not what was read of it any more.
var errChanged = errors.New("it was changed meanwhile")

// replace puts new content in the place of what was read, durably, and returns under
// which name that is now. It fails with fs.ErrExist when nothing was read and a file is
// there, and with fs.ErrNotExist or errChanged when the file is not what was read. That
// is looked at once more at the last moment: then hardly anybody can come between.
func (f *File) replace(dir *os.File, read, want []byte) (replaced string, err error) {
	name := filepath.Base(f.name)
	perm := fs.FileMode(filePerm)
	if read != nil {
		st, err := f.disk.Lstat(dir, name)
		if err != nil {
			return "", err
		}
		perm = st.Mode.Perm()
	}
	var random [8]byte
	rand.Read(random[:]) // never fails
	temp := durable.TempPrefix + hex.EncodeToString(random[:])
	file, err := f.disk.Create(dir, temp)
	if err != nil {
		return "", err
	}
	err = errors.Join(f.disk.Write(file, want), f.disk.Chmod(file, perm), f.disk.Sync(file), f.disk.Close(file))
	if err == nil {
		err = f.place(dir, temp, name, read)
	}
	if err != nil {
		return "", errors.Join(err, f.disk.Remove(dir, temp))
	}
	return temp, f.disk.Sync(dir)
}

// place moves a new file to its name, or exchanges it with what was read there.
func (f *File) place(dir *os.File, temp, name string, read []byte) error {
	if read == nil {
		return f.disk.Move(dir, temp, dir, name)
	}
	now, _, err := f.load(dir, name)
	switch {
	case err != nil:
		return err
	case !bytes.Equal(now, read):
		return errChanged
	}
	return f.disk.Exchange(dir, temp, dir, name)
}

// takeReplaced reads what a file held when it was replaced, which is what was read
// before unless a foreign tool came between, and removes it.
func (f *File) takeReplaced(ctx context.Context, dir *os.File, name string) (Reading, error) {
	text, r, err := f.readAs(ctx, dir, name)
	if err == nil && text != nil {
		err = f.disk.Remove(dir, name)
	}
	return r, err
}
