package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper/internal/session/refusal"
)

// A Print is a fingerprint that shows whether a file was touched: its inode, size, times and,
// if read, its content hash. The zero value means that there is no file.
type Print struct {
	Inode uint64 `json:"inode,omitempty"`
	Size  int64  `json:"size,omitempty"`
	Mtime int64  `json:"mtime,omitempty"`
	Ctime int64  `json:"ctime,omitempty"`
	Sum   string `json:"sum,omitempty"` // SHA-256 of the content in hex; empty: not computed
}

// A File records the last state of a file that a session knows: as the session left it, found it
// when it claimed it, or was shown it.
type File struct {
	Print
	Seen  bool   `json:"seen,omitempty"`  // the session knows the content
	Own   bool   `json:"own,omitempty"`   // the session left the file in this state
	Part  bool   `json:"part,omitempty"`  // the session changed a file that it had not seen, so others may have written the rest
	Found *Print `json:"found,omitempty"` // the state that was reported to the session instead, maybe made by another program
}

// expected returns the file state that the session expects on disk.
func (f File) expected() Print {
	if f.Found != nil {
		return *f.Found
	}
	return f.Print
}

// withPrint returns the file with a new fingerprint for the same content.
func (f File) withPrint(p Print) File {
	if f.Found != nil {
		f.Found = &p
	} else {
		f.Print = p
	}
	return f
}

// maxCopied is the largest size of a file whose content is compared and copied.
const maxCopied = 1 << 20

// touched reports whether the inode, size or times of a file changed.
func (p Print) touched(now Print) bool {
	return p.Inode != now.Inode || p.Size != now.Size || p.Mtime != now.Mtime || p.Ctime != now.Ctime
}

// changed reports whether the content may have changed.
func (p Print) changed(now Print) bool {
	return p.touched(now) && (p.Sum == "" || p.Sum != now.Sum)
}

func printOf(s *unix.Stat_t) Print {
	return Print{Inode: s.Ino, Size: s.Size, Mtime: s.Mtim.Nano(), Ctime: s.Ctim.Nano()}
}

// stat returns the fingerprint of the file at a path, without its content hash.
func (b *Registry) stat(path string) (Print, error) {
	var s unix.Stat_t
	err := unix.Lstat(b.at(path), &s)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return Print{}, nil
	}
	if err != nil {
		return Print{}, &os.PathError{Op: "lstat", Path: path, Err: err}
	}
	return printOf(&s), nil
}

// read returns the fingerprint of a file. For a small file it adds the content and its hash.
func (b *Registry) read(path string) (p Print, content []byte, err error) {
	p, err = b.stat(path)
	if err != nil || p.Inode == 0 || p.Size > maxCopied {
		return p, nil, err
	}
	f, err := os.OpenFile(b.at(path), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Print{}, nil, nil
	case errors.Is(err, syscall.ELOOP), errors.Is(err, fs.ErrPermission):
		return p, nil, nil // the path is not a regular file, so it has no content to compare
	case err != nil:
		return p, nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return p, nil, err
	}
	content, err = io.ReadAll(io.LimitReader(f, maxCopied+1))
	if err != nil || len(content) > maxCopied {
		return p, nil, err
	}
	sum := sha256.Sum256(content)
	p.Sum = hex.EncodeToString(sum[:])
	return p, content, nil
}

// remember records the current files at some paths and keeps copies for later comparisons. If
// own is set, the session left them in this state, so it has seen them unless they are unchanged.
func (s *Session) remember(ctx context.Context, paths []string, own bool) error {
	for _, path := range paths {
		p, content, err := s.registry.read(path)
		if err != nil {
			return err
		}
		if p.Sum != "" {
			if err := s.registry.copy(p.Sum, content); err != nil {
				return err
			}
		}
		was := s.rec.Files[path]
		knew := was.Inode == 0 || was.Size == 0 || was.Seen && !was.Part
		f := File{Print: p, Own: own, Seen: own || was.Seen && !was.expected().changed(p), Part: own && !knew}
		if own && (was.Inode != 0 || was.Own) && !was.expected().changed(p) {
			f = was.withPrint(p)
		}
		if err := s.note(ctx, path, f); err != nil {
			return err
		}
	}
	return nil
}

// maxFiles limits the files that a session remembers but does not hold.
const maxFiles = 4_000

// note records a file, and forgets others if there are too many. It never forgets files that the
// session holds.
func (s *Session) note(ctx context.Context, path string, f File) error {
	if s.rec.Files == nil {
		s.rec.Files = map[string]File{}
	}
	if len(s.rec.Files) > maxFiles {
		held, err := s.Holds(ctx)
		if err != nil {
			return err
		}
		known := s.rec.Files
		s.rec.Files = map[string]File{}
		for _, p := range held {
			if was, ok := known[p]; ok {
				s.rec.Files[p] = was
			}
		}
	}
	s.rec.Files[path] = f
	return nil
}

// Saw records that the session was shown a file, if shown returns true for the current content.
// For a file that is too large to read, the content is nil.
func (s *Session) Saw(ctx context.Context, path string, shown func(content []byte) bool) error {
	now, err := fileClock()
	if err != nil {
		return err
	}
	p, content, err := s.registry.read(path)
	if err != nil || p.Inode == 0 || !shown(content) {
		return err
	}
	f := s.rec.Files[path]
	switch {
	case !f.expected().changed(p):
		f = f.withPrint(p)
	case f.Own && s.rec.mayWrite(path, now):
		return nil // Disturbed reports the change when that call has ended
	default:
		f = File{Print: p}
	}
	f.Seen, f.Part = true, false
	return s.note(ctx, path, f)
}

// unread says why a session may not replace a whole file, or returns "".
func (s *Session) unread(w Write) (string, error) {
	fact, err := s.unseen(w)
	if fact == "" && w.Whole && s.rec.Files[w.Path].Part {
		fact = "you changed it, and have read only a part of it in this session"
	}
	return fact, err
}

// unseen says why the session does not know the content that it is about to replace. It returns
// "" if the session knows it or the file is missing or empty.
func (s *Session) unseen(w Write) (string, error) {
	if !w.Whole {
		return "", nil
	}
	now, err := s.registry.stat(w.Path)
	if err != nil || now.Inode == 0 || now.Size == 0 {
		return "", err
	}
	f := s.rec.Files[w.Path]
	switch {
	case !f.Seen && f.Found != nil:
		return "it changed while you held it, and you have not read it since", nil
	case !f.Seen:
		return "you have not read it in this session", nil
	case !f.expected().touched(now):
		return "", nil
	}
	now, content, err := s.registry.read(w.Path)
	if err != nil || !f.expected().changed(now) {
		return "", err
	}
	clock, err := fileClock()
	if err != nil || s.growsInBackground(w.Path, f, now, content, clock) {
		return "", err
	}
	return "another program changed it " + refusal.Span(s.registry.now().Sub(time.Unix(0, now.Mtime))) + " ago", nil
}

// copies returns the file name of the kept content with this hash.
func (b *Registry) copies(sum string) string { return filepath.Join(CopiesDir(b.app), sum) }

func (b *Registry) copy(sum string, content []byte) error {
	name := b.copies(sum)
	if _, err := os.Lstat(name); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	draft := fmt.Sprintf("%s.%d", name, os.Getpid())
	if err := os.WriteFile(draft, content, 0o600); err != nil {
		return err
	}
	return os.Rename(draft, name)
}

const copiesKept = 14 * 24 * time.Hour

func (b *Registry) sweepCopies() error {
	list, err := os.ReadDir(CopiesDir(b.app))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range list {
		info, gone := e.Info()
		if gone == nil && b.now().Sub(info.ModTime()) > copiesKept {
			err = errors.Join(err, os.Remove(b.copies(e.Name())))
		}
	}
	return err
}
