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

	maxSize   = 1 << 20         // more than any project needs
	settling  = 2 * time.Second // how long a foreign writer may take to finish the file
	pollPause = 10 * time.Millisecond
	rounds    = 100 // attempts when foreign writers keep changing the file
)

// A File is one locks file.
type File struct {
	root string // nothing is written outside this directory
	name string // the path relative to root
	disk durable.Disk
}

// Open returns the locks file at a path relative to root. The first change creates it and
// its directory.
func Open(root, name string) *File { return &File{root: root, name: name, disk: durable.OSDisk{}} }

// Path returns the path of the file.
func (f *File) Path() string { return filepath.Join(f.root, f.name) }

// A Reading is the content of the file.
type Reading struct {
	Entries []Entry
	Known   bool     // the file was complete: foreign tools hold no other locks
	Corrupt *Corrupt // nil if the file was valid
}

// A Corrupt describes a malformed file.
type Corrupt struct {
	Reason string
	Backup string // its new path
	Saved  int    // readable entries
}

// Update reads the file under the guard, calls change with its content and writes the
// entries that change returns. If a foreign tool wrote in between, its changes are written
// first and change is called again. So change sees only entries that are in the file.
func (f *File) Update(ctx context.Context, change func(Reading) ([]Entry, error)) (err error) {
	dir, leave, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, leave()) }()
	var lost pending
	for range rounds {
		text, read, err := f.read(ctx, dir)
		if err != nil {
			return err
		}
		lost.corrupt = cmp.Or(read.Corrupt, lost.corrupt)
		restoring := !lost.none()
		entries := lost.applied(read.Entries)
		if !restoring {
			read.Corrupt = lost.corrupt
			if entries, err = change(read); err != nil {
				return err
			}
		}
		whole, err := f.write(ctx, dir, text, read.Entries, Encode(entries), &lost)
		switch {
		case err != nil:
			return err
		case whole && !restoring:
			return nil
		case whole:
			lost.came, lost.went = nil, nil
		}
	}
	return f.fileError(fmt.Sprintf("a foreign tool changed it during each of %d attempts", rounds), nil)
}

// A pending is the changes of a foreign tool to a file that was then replaced.
type pending struct {
	came, went []Entry
	corrupt    *Corrupt
}

func (p *pending) none() bool { return len(p.came)+len(p.went) == 0 }

func (p *pending) applied(entries []Entry) []Entry {
	return slices.DeleteFunc(slices.Concat(entries, p.came), func(e Entry) bool { return slices.Contains(p.went, e) })
}

// write replaces the text that was read. If a foreign tool wrote in between, it returns
// false and adds that tool's changes to lost.
func (f *File) write(ctx context.Context, dir *os.File, text []byte, read []Entry, want []byte, lost *pending) (whole bool, err error) {
	switch {
	case bytes.Equal(want, text):
		return true, nil
	case len(want) > maxSize: // a larger file could not be read again, so no claim could be released
		return false, &lockkeeper.StoreError{Store: f.Path(), Reason: fmt.Sprintf("it would have %d bytes, over the limit of %d", len(want), maxSize),
			Next: "release or clear unused claims: lockkeeper claim status"}
	}
	replaced, err := f.replace(dir, text, want)
	switch {
	case errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, errChanged):
		return false, nil
	case err != nil:
		return false, f.fileError("cannot be written", err)
	case text == nil:
		return true, nil
	}
	after, err := f.takeReplaced(ctx, dir, replaced)
	if err != nil {
		return false, err
	}
	came, went := diff(read, after.Entries)
	if after.Corrupt != nil { // a missing entry may be one that could not be read
		went, lost.corrupt = nil, after.Corrupt
	}
	lost.came, lost.went = append(lost.came, came...), append(lost.went, went...)
	return len(came)+len(went) == 0 && after.Corrupt == nil, nil
}

func (f *File) read(ctx context.Context, dir *os.File) (text []byte, r Reading, err error) {
	return f.readAs(ctx, dir, filepath.Base(f.name))
}

// readAs reads the file under a name; text is nil if it is missing. A malformed file is
// moved aside after its writer had time to finish.
func (f *File) readAs(ctx context.Context, dir *os.File, name string) (text []byte, r Reading, err error) {
	text, entries, err := f.whole(ctx, dir, name)
	var corrupt *CorruptError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, Reading{}, nil
	case errors.As(err, &corrupt) && corrupt.OtherDocument && name == filepath.Base(f.name): // another program's file
		return nil, r, f.fileError("is JSON, but not a locks file", nil)
	case errors.As(err, &corrupt):
		r = Reading{Entries: entries, Corrupt: &Corrupt{Reason: corrupt.Reason, Saved: len(entries)}}
		r.Corrupt.Backup, err = f.setAside(dir, name)
		if errors.Is(err, fs.ErrNotExist) { // removed at this moment
			return nil, Reading{}, nil
		}
		return nil, r, err
	case err != nil:
		reason := "cannot be read"
		if what := otherThan(0, filepath.Join(filepath.Dir(f.Path()), name)); what != "" {
			reason += " because it is " + what
		}
		return nil, r, f.fileError(reason, err)
	}
	return text, Reading{Entries: entries, Known: true}, nil
}

// whole reads a file and waits for a writer that may be in the middle of writing it.
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
		if err := sleep(ctx, pollPause); err != nil {
			return nil, nil, err
		}
	}
}

// load reads a regular file of limited size. The text is not nil.
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
		return nil, modified, errors.New("it is not a regular file")
	case info.Size() > maxSize:
		return nil, modified, fmt.Errorf("it has %d bytes, over the limit of %d", info.Size(), maxSize)
	}
	text, err = io.ReadAll(io.LimitReader(file, maxSize))
	return text, info.ModTime(), err
}

// setAside moves a malformed file to an unused name.
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

// errChanged says that a file has changed since it was read.
var errChanged = errors.New("it was changed meanwhile")

// replace durably replaces the text that was read and returns the name of the replaced
// file. It returns fs.ErrExist if nothing was read and the file exists now, and
// fs.ErrNotExist or errChanged if the file differs from what was read.
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

// place moves a new file to its name, or exchanges it with the file that was read. It
// checks that file at the last moment, so that a foreign write rarely comes between.
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

// takeReplaced reads and removes a replaced file. It differs from what was read if a
// foreign tool wrote in between.
func (f *File) takeReplaced(ctx context.Context, dir *os.File, name string) (Reading, error) {
	text, r, err := f.readAs(ctx, dir, name)
	if err == nil && text != nil {
		err = f.disk.Remove(dir, name)
	}
	return r, err
}
