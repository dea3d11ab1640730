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
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/durable"
	"lockkeeper/internal/machine/filelock"
)

const (
	dirPerm  = 0o755
	filePerm = 0o644

	maxSize    = 1 << 20         // more than any project needs
	finishTime = 2 * time.Second // how long a foreign writer may take to finish the file
	pollPause  = 10 * time.Millisecond
	rounds     = 100 // attempts when foreign writers keep changing the file
)

type File struct {
	root string // nothing is written outside this directory
	name string // the path relative to root
	disk durable.Disk
}

// Open returns the locks file at a path relative to root. The first change creates it and
// its directory.
func Open(root, name string) *File { return &File{root: root, name: name, disk: durable.OSDisk{}} }

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
	Backup string // new path of the unreadable file
	Saved  int    // number of readable entries
}

// Update reads the file under the guard, calls the function change with its content and writes the
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
		text, read, err := f.readAs(ctx, dir, filepath.Base(f.name))
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
// false and adds that tool's changes to the argument lost.
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

// readAs reads the file under a name; text is nil if it is missing. A malformed file is
// moved aside after its writer had time to finish.
func (f *File) readAs(ctx context.Context, dir *os.File, name string) (text []byte, r Reading, err error) {
	text, entries, err := f.whole(ctx, dir, name)
	var corrupt *CorruptError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, Reading{}, nil
	case errors.As(err, &corrupt) && corrupt.OtherDocument && name == filepath.Base(f.name): // the file belongs to another program
		return nil, r, f.fileError("is JSON, but not a locks file", nil)
	case errors.As(err, &corrupt):
		r = Reading{Entries: entries, Corrupt: &Corrupt{Reason: corrupt.Reason, Saved: len(entries)}}
		r.Corrupt.Backup, err = f.setAside(dir, name)
		if errors.Is(err, fs.ErrNotExist) { // another process removed the file just now
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
	for limit := time.Now().Add(finishTime); ; {
		modified := time.Time{}
		if text, modified, err = f.load(dir, name); err != nil {
			return nil, nil, err
		}
		entries, err = Decode(text)
		age := time.Since(modified)
		if err == nil || age > finishTime || time.Now().After(limit) {
			return text, entries, err
		}
		select {
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		case <-time.After(pollPause):
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

// open creates and opens the directory and acquires the guard. It does not follow a link
// out of the root, because the link's creator could choose where to write.
func (f *File) open(ctx context.Context) (dir *os.File, leave func() error, err error) {
	if dir, err = f.openDir(); err != nil {
		return nil, nil, f.directoryError(err)
	}
	unguard, err := f.guard(ctx, dir)
	if err != nil {
		return nil, nil, errors.Join(err, dir.Close())
	}
	return dir, func() error { return errors.Join(unguard(), dir.Close()) }, nil
}

func (f *File) openDir() (dir *os.File, err error) {
	root, err := os.OpenRoot(f.root)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	at := filepath.Dir(f.name)
	if err := root.MkdirAll(at, dirPerm); err != nil {
		return nil, err
	}
	return root.OpenFile(at, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
}

func (f *File) fileError(reason string, err error) error {
	return &lockkeeper.StoreError{Store: f.Path(), Reason: reason, Err: err,
		Next: "make it a readable and writable locks file, or move it away; Lockkeeper's claims are safe in its own store"}
}

// directoryError says why the directory of the file cannot be used, and where a link
// leads.
func (f *File) directoryError(err error) error {
	reason, at := "its directory cannot be used", f.root
	for name := range strings.SplitSeq(filepath.Dir(f.name), string(filepath.Separator)) {
		at = filepath.Join(at, name)
		if what := otherThan(fs.ModeDir, at); what != "" {
			reason += " because " + at + " is " + what
			break
		}
	}
	return &lockkeeper.StoreError{Store: f.Path(), Reason: reason, Err: err,
		Next: "make it a readable and writable directory inside the root, or set another locks_file; Lockkeeper's claims are safe in its own store"}
}

// otherThan describes the file at a path if its type is not the wanted one, or returns "".
func otherThan(want fs.FileMode, path string) string {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() == want {
		return ""
	}
	switch info.Mode().Type() {
	case 0:
		return "a file"
	case fs.ModeDir:
		return "a directory"
	case fs.ModeNamedPipe:
		return "a pipe"
	case fs.ModeSocket:
		return "a socket"
	case fs.ModeSymlink:
		to, err := os.Readlink(path)
		if err != nil {
			to = "an unknown target: " + err.Error()
		}
		return fmt.Sprintf("a link to %s", to)
	}
	return "a device"
}

// maxGuardWait is how long to wait for other Lockkeeper processes. Each takes a few milliseconds, unless it was
// suspended or the machine is very busy.
const maxGuardWait = 2 * time.Minute

// guard waits for the exclusive right of one Lockkeeper process to change the file.
func (f *File) guard(ctx context.Context, dir *os.File) (leave func() error, err error) {
	g, err := openGuard(dir, f.Path()+".guard")
	if err != nil {
		return nil, &lockkeeper.StoreError{Store: f.Path(), Reason: "its guard cannot be opened", Err: err,
			Next: "make the guard and its directory readable and writable, or remove the guard while no claim is being made"}
	}
	unlock := func() error { return errors.Join(filelock.Unlock(g), g.Close()) }
	limited, cancel := context.WithTimeout(ctx, maxGuardWait)
	defer cancel()
	acquired, err := filelock.Await(limited, g, func() { _ = unlock() }) // the caller has returned, so the error has no receiver
	switch {
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock %s: %w", g.Name(), err), g.Close())
	case !acquired && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case !acquired:
		return nil, &lockkeeper.StoreError{Store: g.Name(), Reason: "another process has held its lock for " + maxGuardWait.String(),
			Next: "find the suspended process with fuser"}
	}
	return unlock, nil
}

// openGuard opens the guard without following links and without blocking.
func openGuard(dir *os.File, path string) (*os.File, error) {
	for {
		fd, err := unix.Openat(int(dir.Fd()), filepath.Base(path), unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, filePerm)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		}
		return os.NewFile(uintptr(fd), path), nil
	}
}
