package landing

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/git"
	"lockkeeper/internal/machine/disk"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/generated"
)

// A Mirror is a directory whose files replace those of the codebase with the same paths.
// It must stay open until they have landed.
type Mirror struct {
	Changes   []gate.Change
	Unchanged []Outcome // files that are the same in the codebase
	Refused   []Outcome // links, pipes and files with invalid paths
	Ignored   []string  // files that git ignores, and directories that tools can make again

	app  *project.Project
	dir  *os.Root
	tree *os.Root
}

// OpenMirror compares a directory with the codebase. The directory may be a full copy: equal
// files are skipped. Of the others only regular files can land, because the meaning of a link or
// a pipe is ambiguous.
func OpenMirror(a *project.Project, dir string) (_ *Mirror, err error) {
	real, err := disk.RealDir(dir)
	if err != nil {
		return nil, err
	}
	m := &Mirror{app: a}
	if m.dir, err = os.OpenRoot(real); err != nil {
		return nil, err
	}
	if m.tree, err = os.OpenRoot(a.Root.Dir()); err == nil {
		err = fs.WalkDir(m.dir.FS(), ".", m.visit)
	}
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

func (m *Mirror) Close() error {
	if m.tree == nil {
		return m.dir.Close()
	}
	return errors.Join(m.tree.Close(), m.dir.Close())
}

func (m *Mirror) visit(path string, d fs.DirEntry, err error) error {
	switch {
	case err != nil:
		return m.unreadable(path, err)
	case strings.EqualFold(d.Name(), lockkeeper.GitTarget) || strings.EqualFold(d.Name(), project.DirName):
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	case d.IsDir() && m.isMade(path, d.Name()):
		m.Ignored = append(m.Ignored, path+"/")
		return fs.SkipDir
	case d.IsDir():
		return nil
	}
	info, err := d.Info()
	if err != nil {
		return m.unreadable(path, err)
	}
	there, err := m.tree.Lstat(filepath.FromSlash(path))
	if err != nil {
		there = nil // the file is new, or the gate reports the problem
	}
	same, err := m.isSame(path, info, there)
	if err != nil {
		return m.unreadable(path, err)
	}
	if same {
		m.Unchanged = append(m.Unchanged, Outcome{Path: path})
		return nil
	}
	if !info.Mode().IsRegular() {
		m.Refused = append(m.Refused, Outcome{Path: path, Refusal: m.irregular(path, info.Mode())})
		return nil
	}
	target, err := m.app.FileAt("", path)
	if err != nil {
		m.Refused = append(m.Refused, Outcome{Path: path, Refusal: err})
		return nil
	}
	if target != path { // the path goes through a link
		if there, err = os.Lstat(filepath.Join(m.app.Root.Dir(), filepath.FromSlash(target))); err != nil {
			there = nil
		}
	}
	m.Changes = append(m.Changes, gate.Change{Path: target, Body: m.body(path), Mode: modeFor(there, info.Mode())})
	return nil
}

// isMade reports whether a directory is a virtual environment, or a new one with the name of a cache.
func (m *Mirror) isMade(path, name string) bool {
	if _, err := m.dir.Lstat(path + "/pyvenv.cfg"); err == nil {
		return true
	}
	_, err := m.tree.Lstat(filepath.FromSlash(path))
	return generated.IsCache(name) && errors.Is(err, fs.ErrNotExist)
}

// LeaveIgnored leaves out what git ignores by the rules of the codebase. Files in the index are never ignored.
func (m *Mirror) LeaveIgnored(ctx context.Context) error {
	if m.app == nil {
		return nil // the mirror was made without a directory
	}
	var paths []string
	for _, c := range m.Changes {
		paths = append(paths, c.Path)
	}
	for _, o := range m.Refused {
		paths = append(paths, o.Path)
	}
	if len(paths) == 0 {
		return nil
	}
	repo, err := git.Open(ctx, m.app.Root.Dir(), os.Environ())
	if _, none := errors.AsType[*git.NoneError](err); none {
		return nil
	}
	if err != nil {
		return err
	}
	ignored, err := repo.Ignored(ctx, paths)
	if err != nil {
		return err
	}
	m.Changes = slices.DeleteFunc(m.Changes, func(c gate.Change) bool { return ignored[c.Path] })
	m.Refused = slices.DeleteFunc(m.Refused, func(o Outcome) bool { return ignored[o.Path] })
	m.Ignored = append(m.Ignored, slices.Sorted(maps.Keys(ignored))...)
	return nil
}

// isSame reports whether the codebase and the directory have the same link, or the same file with
// the same executable bit.
func (m *Mirror) isSame(path string, info, there fs.FileInfo) (bool, error) {
	switch {
	case there == nil || there.Mode().Type() != info.Mode().Type():
		return false, nil
	case info.Mode().Type() == fs.ModeSymlink:
		want, err := m.dir.Readlink(path)
		has, failed := m.tree.Readlink(filepath.FromSlash(path))
		return failed == nil && want == has, err
	case !info.Mode().IsRegular() || there.Size() != info.Size() || modeFor(there, info.Mode()) != nil:
		return false, nil
	}
	has, err := m.tree.OpenFile(filepath.FromSlash(path), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return false, nil // the gate reports the problem
	}
	defer has.Close()
	want, err := m.body(path)()
	if err != nil {
		return false, err
	}
	defer want.Close()
	return sameContent(want, has, info.Size())
}

// sameContent compares two readers of about this size. It returns an error only if the
// reader want fails.
func sameContent(want, has io.Reader, size int64) (bool, error) {
	const most = 64 << 10
	chunk := min(size+1, most)
	a, b := make([]byte, chunk), make([]byte, chunk)
	for {
		n, err := io.ReadFull(want, a)
		ended := err == io.EOF || err == io.ErrUnexpectedEOF
		if err != nil && !ended {
			return false, err
		}
		k, err := io.ReadFull(has, b)
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF || !bytes.Equal(a[:n], b[:k]) {
			return false, nil
		}
		if ended {
			return true, nil
		}
	}
}

// body opens a file and refuses anything else. It follows no link out of the directory and
// does not block on a pipe.
func (m *Mirror) body(path string) gate.Body {
	return func() (io.ReadCloser, error) {
		f, err := m.dir.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			return nil, m.unreadable(path, err)
		}
		info, err := f.Stat()
		if err == nil && !info.Mode().IsRegular() {
			err = m.irregular(path, info.Mode())
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return f, nil
	}
}

func (m *Mirror) irregular(path string, mode fs.FileMode) error {
	what := "neither a file nor a directory"
	switch mode.Type() {
	case fs.ModeSymlink:
		what = "a symbolic link, which cannot land"
	case fs.ModeNamedPipe:
		what = "a named pipe, which cannot land"
	}
	return m.bad(path, what, "keep only regular files in the directory")
}

func (m *Mirror) unreadable(path string, err error) error {
	if lockkeeper.CodeOf(err) == lockkeeper.CodeInput {
		return err
	}
	return m.bad(path, disk.Reason(err), "make it a readable file")
}

// bad returns an error about a file of the mirror. Its field is not "path", because the
// file is not in the codebase.
func (m *Mirror) bad(path, reason, next string) error {
	return &lockkeeper.InputError{Field: "file of --from", Value: filepath.Join(m.dir.Name(), filepath.FromSlash(path)), Reason: reason, Next: next}
}

// modeFor returns the new mode of a file. A new file gets the mode of its source. An existing
// file keeps its mode except for the executable bits, which follow the source.
func modeFor(there fs.FileInfo, source fs.FileMode) *fs.FileMode {
	const execute, read = 0o111, 0o444
	mode := source.Perm()
	if there == nil {
		return &mode
	}
	own := there.Mode().Perm()
	switch wanted := mode&execute != 0; {
	case wanted == (own&execute != 0):
		return nil
	case wanted:
		mode = own | own&read>>2
	default:
		mode = own &^ execute
	}
	return &mode
}
