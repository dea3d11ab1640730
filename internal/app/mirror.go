package app

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/gate"
)

// Mirror is a directory whose files are to become those of the codebase with the
// same paths. It stays open until they have.
type Mirror struct {
	Changes []gate.Change
	Refused []Outcome // files that no path of the codebase can be

	app *App
	dir *os.Root
}

// OpenMirror looks through a directory. Nothing but files and directories may be
// in it: what a link or a pipe there means is anybody's guess.
func (a *App) OpenMirror(dir string) (*Mirror, error) {
	real, err := realDir(dir)
	if err != nil {
		return nil, err
	}
	opened, err := os.OpenRoot(real)
	if err != nil {
		return nil, err
	}
	m := &Mirror{app: a, dir: opened}
	if err := fs.WalkDir(opened.FS(), ".", m.visit); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// Close gives the directory back.
func (m *Mirror) Close() error { return m.dir.Close() }

func (m *Mirror) visit(path string, d fs.DirEntry, err error) error {
	switch {
	case err != nil:
		return m.unreadable(path, err)
	case strings.EqualFold(d.Name(), lockkeeper.GitTarget) || strings.EqualFold(d.Name(), dirName):
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	case d.IsDir():
		return nil
	case !d.Type().IsRegular():
		return m.odd(path, d.Type())
	}
	info, err := d.Info()
	if err != nil {
		return m.unreadable(path, err)
	}
	target, err := m.app.fileAt("", path)
	if err != nil {
		m.Refused = append(m.Refused, Outcome{Path: path, Refusal: err})
		return nil
	}
	there, err := os.Lstat(filepath.Join(m.app.Root.Dir(), filepath.FromSlash(target)))
	if err != nil {
		there = nil // new, or the gate will say what is in the way
	}
	m.Changes = append(m.Changes, gate.Change{Path: target, Body: m.body(path), Mode: modeFor(there, info.Mode())})
	return nil
}

// body reads a file that must still be one. No link is followed out of the
// directory, and no pipe is waited for.
func (m *Mirror) body(path string) gate.Body {
	return func() (io.ReadCloser, error) {
		f, err := m.dir.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			return nil, m.unreadable(path, err)
		}
		info, err := f.Stat()
		if err == nil && !info.Mode().IsRegular() {
			err = m.odd(path, info.Mode())
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return f, nil
	}
}

func (m *Mirror) odd(path string, mode fs.FileMode) error {
	what := "neither a file nor a directory"
	switch mode.Type() {
	case fs.ModeSymlink:
		what = "a symbolic link, which cannot land"
	case fs.ModeNamedPipe:
		what = "a named pipe, which cannot land"
	}
	return m.bad(path, what, "leave only the files in the directory that are to land")
}

func (m *Mirror) unreadable(path string, err error) error {
	return m.bad(path, reasonOf(err), "make it a file that you may read")
}

// bad is about a file of the mirror and not of the codebase, so its field is not
// path.
func (m *Mirror) bad(path, reason, next string) error {
	return &lockkeeper.InputError{Field: "file of --from", Value: filepath.Join(m.dir.Name(), filepath.FromSlash(path)), Reason: reason, Next: next}
}

// modeFor is the mode that a file gets: a new one that of its source, one that
// is there its own, with the source's word on whether it can be executed.
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
