package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/durable"
	"lockkeeper/internal/project/config"
)

// With sessions.read_only, the files that a session holds are read-only on disk, except while its own
// calls run. So an editor warns the person who opens one, and a program without hooks fails. A list
// has the mode that each file had before. It is on disk before a mode is changed, so that any process
// can restore the modes when a session or the machine has crashed.

// A protection is an entry of the list: a file that is, or may be, read-only for its holder.
type protection struct {
	Mode  fs.FileMode `json:"mode"`  // permissions before the file became read-only
	Grant string      `json:"grant"` // the holder's grant
}

// mayBeWritten are the permissions that a read-only file lacks.
const mayBeWritten fs.FileMode = 0o222

// protections is the list of one copy of the codebase, under its lock.
type protections struct {
	registry *Registry
	root     *os.Root
	files    map[string]protection // by path
	changed  bool                  // the list on disk is out of date
}

// protectionsFile returns the file name of the list of protections.
func (b *Registry) protectionsFile() string {
	sum := sha256.Sum256([]byte(b.app.Root.Dir()))
	return filepath.Join(b.dir, "readonly-"+hex.EncodeToString(sum[:8]))
}

// protections opens the list for a function, and saves it afterwards.
func (b *Registry) protections(ctx context.Context, do func(*protections) error) (err error) {
	file := b.protectionsFile()
	locked, err := lockFile(file + lockEnd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, locked.Close()) }()
	p := &protections{registry: b, files: map[string]protection{}}
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil {
		if err := json.Unmarshal(text, &p.files); err != nil {
			return &lockkeeper.StoreError{Store: file, Reason: "cannot read the list of read-only files", Err: err, Next: "make the held files writable with chmod, and remove the list"}
		}
	}
	if p.root, err = os.OpenRoot(b.app.Root.Dir()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.root.Close()) }()
	return errors.Join(do(p), p.save(ctx))
}

func (p *protections) save(ctx context.Context) error {
	if !p.changed {
		return nil
	}
	p.changed = false
	file := p.registry.protectionsFile()
	if len(p.files) == 0 {
		return os.Remove(file)
	}
	text, err := json.Marshal(p.files)
	if err != nil {
		return err
	}
	return durable.WriteFile(ctx, file, text, 0o600)
}

func (p *protections) note(path string, entry protection) {
	if p.files[path] != entry {
		p.files[path], p.changed = entry, true
	}
}

// modeOf returns the permissions of a file. It reports false for anything but a regular file whose
// permissions this user may change and restore. A set-user-ID bit, for example, does not come back.
func (p *protections) modeOf(path string) (fs.FileMode, bool) {
	info, err := p.root.Lstat(filepath.FromSlash(path))
	if err != nil || info.Mode() != info.Mode().Perm() {
		return 0, false
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	return info.Mode().Perm(), known && (int(owner.Uid) == os.Geteuid() || os.Geteuid() == 0)
}

// set changes the permissions of a file from one value to another. A file that is missing, or that
// has other permissions, stays as it is.
func (p *protections) set(path string, from, to fs.FileMode) error {
	if is, ok := p.modeOf(path); !ok || is != from || from == to {
		return nil
	}
	f, err := p.root.OpenFile(filepath.FromSlash(path), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ELOOP) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() && info.Mode().Perm() == from {
		err = f.Chmod(to)
	}
	return errors.Join(err, f.Close())
}

// lift gives a file the permissions that it had before.
func (p *protections) lift(path string) error {
	mode := p.files[path].Mode
	return p.set(path, mode&^mayBeWritten, mode)
}

// Protect makes the files that the session holds read-only, if the configuration says so. It leaves
// out files that a call or a background command of the session may be writing.
func (s *Session) Protect(ctx context.Context) error {
	if s.registry.app.Config.Sessions.ReadOnly != config.On || s.rec.GrantID == "" {
		return nil
	}
	now, err := fileClock()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(s.rec.Background, func(c Call) bool { return now-c.At < int64(longestCall) }) {
		return nil
	}
	held, err := s.Holds(ctx)
	if err != nil {
		return err
	}
	held = slices.DeleteFunc(held, func(path string) bool { return isReserved(path) || s.rec.mayWrite(path, now) })
	return s.registry.protections(ctx, func(p *protections) error {
		for _, path := range held {
			mode, ok := p.modeOf(path)
			entry, known := p.files[path]
			switch {
			case !ok:
			case mode&mayBeWritten != 0:
				p.note(path, protection{mode, s.rec.GrantID})
			case known && mode == entry.Mode&^mayBeWritten: // an earlier holder left the file read-only
				p.note(path, protection{entry.Mode, s.rec.GrantID})
			}
		}
		err := p.save(ctx) // the list is stored before a mode is changed
		for _, path := range held {
			if entry, listed := p.files[path]; listed && err == nil {
				err = errors.Join(p.set(path, entry.Mode, entry.Mode&^mayBeWritten), s.chmoded(path))
			}
		}
		return err
	})
}

// Writable restores the permissions of files that the session is about to write: all that it holds,
// or the named ones.
func (s *Session) Writable(ctx context.Context, all bool, paths ...string) error {
	if !s.registry.mayProtect() {
		return nil
	}
	return s.registry.protections(ctx, func(p *protections) (err error) {
		for path, entry := range p.files {
			if named := slices.Contains(paths, path); !named && !(all && entry.Grant == s.rec.GrantID) {
				continue
			}
			err = errors.Join(err, p.lift(path), s.chmoded(path))
			p.note(path, protection{entry.Mode, s.rec.GrantID}) // the session has claimed what it writes
		}
		return err
	})
}

// chmoded records that the permissions of a file may have changed, and nothing else.
func (s *Session) chmoded(path string) error {
	f, known := s.rec.Files[path]
	is, err := s.registry.stat(path)
	if was := f.expected(); err == nil && known && was.Inode == is.Inode && was.Size == is.Size && was.Mtime == is.Mtime {
		is.Sum = was.Sum
		s.rec.Files[path] = f.withPrint(is)
	}
	return err
}

// unprotect restores the permissions of all files of a grant, which is about to end.
func (b *Registry) unprotect(ctx context.Context, grantID string) error {
	return b.restoreModes(ctx, func(_ string, entry protection) (bool, error) { return entry.Grant != grantID, nil })
}

// Unprotect restores the permissions of all files.
func (b *Registry) Unprotect(ctx context.Context) error {
	return b.restoreModes(ctx, func(string, protection) (bool, error) { return false, nil })
}

// RestoreModes restores the permissions of files whose holder does not hold them any more: its
// process is gone, or a person released its locks.
func (b *Registry) RestoreModes(ctx context.Context) error {
	return b.restoreModes(ctx, func(path string, entry protection) (bool, error) {
		held, err := b.app.Locks.Request(ctx, entry.Grant)
		return held != nil && !held.Free && covers(held, path), err
	})
}

// mayProtect reports whether there is a list.
func (b *Registry) mayProtect() bool {
	_, err := os.Lstat(b.protectionsFile())
	return err == nil
}

func (b *Registry) restoreModes(ctx context.Context, keep func(path string, entry protection) (bool, error)) error {
	if !b.mayProtect() {
		return nil
	}
	return b.protections(ctx, func(p *protections) (err error) {
		for path, entry := range p.files {
			stays, failed := keep(path, entry)
			if failed == nil && !stays {
				if failed = p.lift(path); failed == nil {
					delete(p.files, path)
					p.changed = true
				}
			}
			err = errors.Join(err, failed)
		}
		return err
	})
}

// writableFor restores the permissions of the files of a grant until the next call of its session ends.
func (b *Registry) writableFor(ctx context.Context, grantID string) error {
	if !b.mayProtect() {
		return nil
	}
	return b.protections(ctx, func(p *protections) (err error) {
		for path, entry := range p.files {
			if entry.Grant == grantID {
				err = errors.Join(err, p.lift(path))
			}
		}
		return err
	})
}
