package lease

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/durable"
)

// maxSize bounds what is read as a lease file; a payload is far below.
const maxSize = 64 << 10

// filePerm lets everybody see who holds a lease: a tool that cannot read one takes
// it for stale.
const filePerm = 0o644

// place is a lease file's directory, and the file's name there.
type place struct {
	disk durable.Disk
	dir  *os.File
	path string // as it was given
	name string
}

// nameOf is the name of a lease file, if a path can be one.
func nameOf(path string) (string, error) {
	const slash = string(filepath.Separator)
	name := filepath.Base(path)
	if path == "" || name == "." || name == ".." || name == slash || strings.HasSuffix(path, slash) {
		return "", &lockkeeper.InputError{Field: "lease", Value: path, Reason: "not the path of a file", Next: "give one such as " + Default}
	}
	return name, nil
}

func openPlace(disk durable.Disk, path string) (*place, error) {
	name, err := nameOf(path)
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(path)
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == unix.ENOENT {
		return nil, fmt.Errorf("lease %s: %w", path, errNoPlace)
	}
	if err != nil {
		return nil, fmt.Errorf("lease %s: %w", path, err)
	}
	return &place{disk: disk, dir: os.NewFile(uintptr(fd), dir), path: path, name: name}, nil
}

func (p *place) close() error { return p.dir.Close() }

// The names beside the lease file.
func (p *place) draft() string  { return "." + p.name + ".new" }
func (p *place) aside() string  { return "." + p.name + ".old" }
func (p *place) beside() string { return filepath.Join(filepath.Dir(p.path), "."+p.name+".guard") }

// found is what is at a name.
type found struct {
	info    fs.FileInfo // nil: nothing is there
	text    []byte
	payload *payload // nil: it cannot be read as a lease
	odd     string   // why it cannot
	says    payload  // what it says, lease or not
	shut    bool     // it may not be read at all
}

func (f *found) isThere() bool { return f.info != nil || f.shut }

// carries reports whether it is the lease that a token proves.
func (f *found) carries(token string) bool { return f.payload != nil && f.payload.Token == token }

// is reports whether two looks found one file, with the same content.
func (f *found) is(other *found) bool {
	return f.info != nil && other.info != nil && os.SameFile(f.info, other.info) && bytes.Equal(f.text, other.text)
}

// key tells one state of a lease file from the next.
func (f *found) key() string {
	switch {
	case f.payload != nil:
		return fmt.Sprint(f.payload.Token, " ", f.payload.RenewedAt.UnixNano(), " ", f.payload.ExpiresAt.UnixNano())
	case f.info != nil:
		return fmt.Sprint("malformed ", f.info.ModTime().UnixNano(), " ", f.info.Size())
	}
	return ""
}

// look reads what is at a name, and what it says. Only what can never be a lease file
// is an error.
func (p *place) look(name string) (*found, error) {
	at, err := p.read(name)
	if err != nil || at.info == nil {
		return at, err
	}
	said, err := decode(at.text)
	at.says = said
	switch {
	case len(at.text) == 0:
		at.odd = "it is empty"
	case len(at.text) > maxSize:
		at.odd = fmt.Sprintf("it has more than %d bytes", maxSize)
	case err != nil:
		at.odd = err.Error()
	default:
		at.payload = &said
	}
	return at, nil
}

// read is look for whoever only compares.
func (p *place) read(name string) (*found, error) {
	refuse := func(what string) error {
		return &lockkeeper.RefusedError{Act: "lease " + p.path, Reason: "there is " + what + ", which nobody holds as a lease; it is left alone",
			Next: "see what it is, and remove it or move it away"}
	}
	f, err := p.disk.OpenFile(p.dir, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &found{}, nil
	case errors.Is(err, unix.ELOOP):
		return nil, refuse("a symbolic link")
	case errors.Is(err, unix.ENXIO):
		return nil, refuse("a socket or a device")
	case errors.Is(err, unix.EXDEV):
		return nil, refuse("a mount")
	case errors.Is(err, fs.ErrPermission):
		return &found{shut: true, odd: "it may not be read: " + err.Error()}, nil
	case err != nil:
		return nil, fmt.Errorf("lease %s: %w", p.path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("lease %s: %w", p.path, err)
	case info.IsDir():
		return nil, refuse("a directory")
	case !info.Mode().IsRegular():
		return nil, refuse("no regular file")
	}
	text := make([]byte, min(info.Size(), maxSize)+1)
	n, err := f.Read(text) // a file that grows meanwhile is not whole in any case
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("lease %s: %w", p.path, err)
	}
	return &found{info: info, text: text[:n]}, nil
}

// write makes a complete file under the draft's name. A crash may have left one
// there, which nobody needs: the guard lets only one of ours in.
func (p *place) write(content payload) error {
	text, err := content.encode()
	if err != nil {
		return err
	}
	f, err := p.disk.Create(p.dir, p.draft())
	if errors.Is(err, fs.ErrExist) {
		if err := p.disk.Remove(p.dir, p.draft()); err != nil {
			return err
		}
		f, err = p.disk.Create(p.dir, p.draft())
	}
	if err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return p.disk.Write(f, text) },
		func() error { return p.disk.Chmod(f, filePerm) },
		func() error { return p.disk.Sync(f) },
	} {
		if err := step(); err != nil {
			return errors.Join(err, p.disk.Close(f), p.disk.Remove(p.dir, p.draft()))
		}
	}
	return p.disk.Close(f)
}

// create puts a lease where there is none; not done: somebody else was faster.
func (p *place) create(content payload) (done bool, err error) {
	if err := p.write(content); err != nil {
		return false, err
	}
	err = p.disk.Move(p.dir, p.draft(), p.dir, p.name)
	if err == nil {
		return true, nil
	}
	dropped := p.disk.Remove(p.dir, p.draft())
	if errors.Is(err, fs.ErrExist) {
		return false, dropped
	}
	return false, errors.Join(p.unable(err), dropped)
}

// swap puts a lease in the place of one that was judged; not done: it is another one
// by now, or gone, and what is there stays. What was displaced lies under the draft's
// name and is the caller's.
func (p *place) swap(judged *found, content payload) (done bool, err error) {
	if err := p.write(content); err != nil {
		return false, err
	}
	// Writing took its time. While the wrong file is displaced its holder may look, and
	// believe that its lease was stolen: so there must be hardly ever a wrong one.
	if now, err := p.read(p.name); err != nil || !now.is(judged) {
		return false, errors.Join(err, p.disk.Remove(p.dir, p.draft()))
	}
	err = p.disk.Exchange(p.dir, p.draft(), p.dir, p.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, p.disk.Remove(p.dir, p.draft())
	case err != nil:
		return false, errors.Join(p.unable(err), p.disk.Remove(p.dir, p.draft()))
	}
	displaced, err := p.read(p.draft())
	if err == nil && displaced.is(judged) {
		return true, nil
	}
	return false, errors.Join(err, p.putBack(content.Token))
}

// putBack undoes an exchange that met somebody else's lease, which lies under the
// draft's name. If yet another one has come into our place meanwhile, that one
// stays: whoever came last believes to hold it.
func (p *place) putBack(token string) error {
	const tries = 5 // nobody is this fast; but nothing here may go on for ever
	ours := func(f *found) bool { return f.carries(token) }
	for range tries {
		theirs, odd := p.read(p.draft()) // what is no lease file at all goes back as well
		err := p.disk.Exchange(p.dir, p.draft(), p.dir, p.name)
		if errors.Is(err, fs.ErrNotExist) { // the name is free by now
			if err = p.disk.Move(p.dir, p.draft(), p.dir, p.name); err == nil {
				return nil
			}
			if errors.Is(err, fs.ErrExist) {
				continue
			}
		}
		if err != nil {
			return p.stranded(err, p.draft())
		}
		out, err := p.look(p.draft())
		if err == nil && ours(out) {
			return p.disk.Remove(p.dir, p.draft())
		}
		if err := errors.Join(err, odd); err != nil {
			return p.stranded(err, p.draft())
		}
		ours = theirs.is
	}
	return p.stranded(errors.New("there was always another one"), p.draft())
}

// remove takes away a lease that was looked at; not done: it is another one by now,
// and what is there stays.
func (p *place) remove(judged *found) (done bool, err error) {
	err = p.disk.Move(p.dir, p.name, p.dir, p.aside())
	if errors.Is(err, fs.ErrExist) { // left by a crash
		if err := p.disk.Remove(p.dir, p.aside()); err != nil {
			return false, err
		}
		err = p.disk.Move(p.dir, p.name, p.dir, p.aside())
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, p.unable(err)
	}
	taken, err := p.read(p.aside())
	if err == nil && taken.is(judged) {
		return true, p.disk.Remove(p.dir, p.aside())
	}
	if backErr := p.disk.Move(p.dir, p.aside(), p.dir, p.name); backErr != nil {
		return false, p.stranded(errors.Join(err, backErr), p.aside())
	}
	return false, err
}

// dropUnused removes the guard of what was refused: it is no lease, and nothing is left
// beside it. Who waits for the guard meanwhile sees that it guards nothing any more.
func (p *place) dropUnused(g *guard, err error) error {
	var refused *lockkeeper.RefusedError
	if g.Serial > 0 || !errors.As(err, &refused) {
		return nil
	}
	return p.disk.Remove(p.dir, filepath.Base(g.path))
}

// unable explains an error of a rename.
func (p *place) unable(err error) error {
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) {
		return &lockkeeper.RefusedError{Act: "lease " + p.path, Reason: "this file system can neither rename without replacing nor exchange two files (" + err.Error() + ")",
			Next: "put the lease on a local disk; several machines share locks through PostgreSQL"}
	}
	return fmt.Errorf("lease %s: %w", p.path, err)
}

// stranded says that somebody's lease was displaced, in a moment when others changed
// it too, and could not be put back.
func (p *place) stranded(err error, name string) error {
	return fmt.Errorf("lease %s: others changed it in the same moment, and one of theirs could not be put back; it is in %s: %w",
		p.path, filepath.Join(filepath.Dir(p.path), name), err)
}
