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

// maxSize bounds the size of a lease file. A payload is far smaller.
const maxSize = 64 << 10

// filePerm lets every user read the holder: a foreign tool treats an unreadable file as
// stale.
const filePerm = 0o644

// A leaseFile is the path of a lease file with its directory open.
type leaseFile struct {
	disk durable.Disk
	dir  *os.File
	path string // path as the caller gave it
	name string
}

// nameOf returns the file name of a path, or an error if it cannot be a lease file.
func nameOf(path string) (string, error) {
	const slash = string(filepath.Separator)
	name := filepath.Base(path)
	if path == "" || name == "." || name == ".." || name == slash || strings.HasSuffix(path, slash) {
		return "", &lockkeeper.InputError{Field: "lease", Value: path, Reason: "not the path of a file", Next: "use a path such as " + Default}
	}
	return name, nil
}

func openLeaseFile(disk durable.Disk, path string) (*leaseFile, error) {
	name, err := nameOf(path)
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(path)
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == unix.ENOENT {
		return nil, fmt.Errorf("lease file %s: %w", path, errNoDirectory)
	}
	if err != nil {
		return nil, fmt.Errorf("lease file %s: %w", path, err)
	}
	return &leaseFile{disk: disk, dir: os.NewFile(uintptr(fd), dir), path: path, name: name}, nil
}

func (p *leaseFile) close() error { return p.dir.Close() }

// These methods return the names of the files next to the lease file.
func (p *leaseFile) draftName() string { return "." + p.name + ".new" }
func (p *leaseFile) asideName() string { return "." + p.name + ".old" }
func (p *leaseFile) guardPath() string {
	return filepath.Join(filepath.Dir(p.path), "."+p.name+".guard")
}

// A fileState is the content of a file when it was read.
type fileState struct {
	info       fs.FileInfo // nil if missing or unreadable
	text       []byte
	payload    *payload // nil if not a valid lease file
	problem    string   // why the file is not valid
	shown      payload  // the fields that could be read, valid or not
	unreadable bool     // the file could not be read because permission was denied
}

func (f *fileState) exists() bool { return f.info != nil || f.unreadable }

func (f *fileState) hasToken(token string) bool { return f.payload != nil && f.payload.Token == token }

// same reports whether both are the same file with the same content.
func (f *fileState) same(other *fileState) bool {
	return f.info != nil && other.info != nil && os.SameFile(f.info, other.info) && bytes.Equal(f.text, other.text)
}

// key identifies one state of a lease file.
func (f *fileState) key() string {
	switch {
	case f.payload != nil:
		return fmt.Sprint(f.payload.Token, " ", f.payload.RenewedAt.UnixNano(), " ", f.payload.ExpiresAt.UnixNano())
	case f.info != nil:
		return fmt.Sprint("malformed ", f.info.ModTime().UnixNano(), " ", f.info.Size())
	}
	return ""
}

// inspect reads and parses a file. It returns an error only for what can never be a lease
// file.
func (p *leaseFile) inspect(name string) (*fileState, error) {
	at, err := p.readRaw(name)
	if err != nil || at.info == nil {
		return at, err
	}
	said, err := decode(at.text)
	at.shown = said
	switch {
	case len(at.text) == 0:
		at.problem = "it is empty"
	case len(at.text) > maxSize:
		at.problem = fmt.Sprintf("it has more than %d bytes", maxSize)
	case err != nil:
		at.problem = err.Error()
	default:
		at.payload = &said
	}
	return at, nil
}

// readRaw reads a file without parsing it.
func (p *leaseFile) readRaw(name string) (*fileState, error) {
	refuse := func(what string) error {
		return &lockkeeper.RefusedError{Act: "lease file " + p.path, Reason: "the path is " + what + ", not a lease file; it was not changed",
			Next: "check what it is, then remove or move it"}
	}
	f, err := p.disk.OpenFile(p.dir, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &fileState{}, nil
	case errors.Is(err, unix.ELOOP):
		return nil, refuse("a symbolic link")
	case errors.Is(err, unix.ENXIO):
		return nil, refuse("a socket or a device")
	case errors.Is(err, unix.EXDEV):
		return nil, refuse("a mount")
	case errors.Is(err, fs.ErrPermission):
		return &fileState{unreadable: true, problem: "it is not readable: " + err.Error()}, nil
	case err != nil:
		return nil, fmt.Errorf("lease file %s: %w", p.path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("lease file %s: %w", p.path, err)
	case info.IsDir():
		return nil, refuse("a directory")
	case !info.Mode().IsRegular():
		return nil, refuse("not a regular file")
	}
	text := make([]byte, min(info.Size(), maxSize)+1)
	n, err := f.Read(text) // a file that grows while it is read is incomplete anyway
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("lease file %s: %w", p.path, err)
	}
	return &fileState{info: info, text: text[:n]}, nil
}

// write creates a complete file under the draft name. A file left there by a crash is
// unused, because the guard admits one process at a time.
func (p *leaseFile) write(content payload) error {
	text, err := content.encode()
	if err != nil {
		return err
	}
	f, err := p.disk.Create(p.dir, p.draftName())
	if errors.Is(err, fs.ErrExist) {
		if err := p.disk.Remove(p.dir, p.draftName()); err != nil {
			return err
		}
		f, err = p.disk.Create(p.dir, p.draftName())
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
			return errors.Join(err, p.disk.Close(f), p.disk.Remove(p.dir, p.draftName()))
		}
	}
	return p.disk.Close(f)
}

// create creates the lease file. done is false if another process was faster.
func (p *leaseFile) create(content payload) (done bool, err error) {
	if err := p.write(content); err != nil {
		return false, err
	}
	err = p.disk.Move(p.dir, p.draftName(), p.dir, p.name)
	if err == nil {
		return true, nil
	}
	dropped := p.disk.Remove(p.dir, p.draftName())
	if errors.Is(err, fs.ErrExist) {
		return false, dropped
	}
	return false, errors.Join(p.renameError(err), dropped)
}

// swap replaces a file that was judged. done is false if the file has changed or is gone;
// it is then left as it is. On success the displaced file has the draft name and belongs
// to the caller.
func (p *leaseFile) swap(judged *fileState, content payload) (done bool, err error) {
	if err := p.write(content); err != nil {
		return false, err
	}
	// Check again after writing, so that the exchange rarely displaces a newer file: its
	// holder could see the gap and believe that it lost the file.
	if now, err := p.readRaw(p.name); err != nil || !now.same(judged) {
		return false, errors.Join(err, p.disk.Remove(p.dir, p.draftName()))
	}
	err = p.disk.Exchange(p.dir, p.draftName(), p.dir, p.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, p.disk.Remove(p.dir, p.draftName())
	case err != nil:
		return false, errors.Join(p.renameError(err), p.disk.Remove(p.dir, p.draftName()))
	}
	displaced, err := p.readRaw(p.draftName())
	if err == nil && displaced.same(judged) {
		return true, nil
	}
	return false, errors.Join(err, p.restore(content.Token))
}

// restore undoes an exchange that displaced another process's file, which now has the draft name.
// If the lease file was replaced again meanwhile, the latest one stays, because its writer believes
// that it holds the lease.
func (p *leaseFile) restore(token string) error {
	const tries = 5 // a bound: no other process replaces the file this often
	ours := func(f *fileState) bool { return f.hasToken(token) }
	for range tries {
		theirs, odd := p.readRaw(p.draftName()) // a file that is not a lease file is restored, too
		err := p.disk.Exchange(p.dir, p.draftName(), p.dir, p.name)
		if errors.Is(err, fs.ErrNotExist) { // the name is free now
			if err = p.disk.Move(p.dir, p.draftName(), p.dir, p.name); err == nil {
				return nil
			}
			if errors.Is(err, fs.ErrExist) {
				continue
			}
		}
		if err != nil {
			return p.stranded(err, p.draftName())
		}
		out, err := p.inspect(p.draftName())
		if err == nil && ours(out) {
			return p.disk.Remove(p.dir, p.draftName())
		}
		if err := errors.Join(err, odd); err != nil {
			return p.stranded(err, p.draftName())
		}
		ours = theirs.same
	}
	return p.stranded(errors.New("another process replaced it each time"), p.draftName())
}

// remove removes a file that was judged. done is false if the file has changed; it is then
// left as it is.
func (p *leaseFile) remove(judged *fileState) (done bool, err error) {
	err = p.disk.Move(p.dir, p.name, p.dir, p.asideName())
	if errors.Is(err, fs.ErrExist) { // a crash left the file
		if err := p.disk.Remove(p.dir, p.asideName()); err != nil {
			return false, err
		}
		err = p.disk.Move(p.dir, p.name, p.dir, p.asideName())
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, p.renameError(err)
	}
	taken, err := p.readRaw(p.asideName())
	if err == nil && taken.same(judged) {
		return true, p.disk.Remove(p.dir, p.asideName())
	}
	if backErr := p.disk.Move(p.dir, p.asideName(), p.dir, p.name); backErr != nil {
		return false, p.stranded(errors.Join(err, backErr), p.asideName())
	}
	return false, err
}

// dropUnused removes the guard of a path that was refused. A process waiting for the guard
// notices that the file is gone.
func (p *leaseFile) dropUnused(g *guard, err error) error {
	var refused *lockkeeper.RefusedError
	if g.Serial > 0 || !errors.As(err, &refused) {
		return nil
	}
	return p.disk.Remove(p.dir, filepath.Base(g.file.Name()))
}

func (p *leaseFile) renameError(err error) error {
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) {
		return &lockkeeper.RefusedError{Act: "lease file " + p.path, Reason: "this file system can neither rename without replacing nor exchange two files (" + err.Error() + ")",
			Next: "put the lease file on a local disk; several machines share locks through PostgreSQL"}
	}
	return fmt.Errorf("lease file %s: %w", p.path, err)
}

// stranded returns the error for another process's file that was displaced and could not
// be restored.
func (p *leaseFile) stranded(err error, name string) error {
	return fmt.Errorf("lease file %s: other processes changed it at the same moment, and one of their files could not be restored; it is in %s: %w",
		p.path, filepath.Join(filepath.Dir(p.path), name), err)
}
