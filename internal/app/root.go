package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"lockkeeper"
	"lockkeeper/durable"
)

const (
	dirName    = ".lockkeeper"
	markerName = "space.json"
)

// marker says which space a root is.
type marker struct {
	Space     string    `json:"space"`
	CreatedAt time.Time `json:"created_at"`
}

func markerPath(root string) string { return filepath.Join(root, dirName, markerName) }

// readMarker finds the marker of a root; nil when there is none.
func readMarker(root string) (*marker, error) {
	path := markerPath(root)
	m, err := loadMarker(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err == nil && !isUUID(m.Space):
		err = errors.New("it names no space")
	}
	if closed := closedMarker(path, err); closed != nil {
		return nil, closed
	}
	if err != nil {
		return nil, &lockkeeper.StoreError{Store: path, Reason: "the marker of this root cannot be read", Err: err,
			Next: "put the file back as it was; the space's id is also in the witness that `lockkeeper init` names"}
	}
	return &m, nil
}

// loadMarker refuses what init never makes: a codebase from elsewhere may bring a
// link that leads out of it, or a file that fills the memory.
func loadMarker(path string) (m marker, err error) {
	const limit = 4 << 10
	if dir, err := os.Lstat(filepath.Dir(path)); err == nil && !dir.IsDir() {
		return m, errors.New(dirName + " is not a directory of its own")
	}
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return m, err
	case !info.Mode().IsRegular():
		return m, errors.New("it is not a regular file")
	case info.Size() > limit:
		return m, fmt.Errorf("it has %d bytes, over the limit of %d", info.Size(), limit)
	}
	return durable.ReadJSON[marker](path)
}

// findRoot walks up from dir to the directory that carries a marker.
func findRoot(dir string) (root string, m *marker, err error) {
	for here := dir; ; here = filepath.Dir(here) {
		m, err := readMarker(here)
		if err != nil || m != nil {
			return here, m, err
		}
		if here == filepath.Dir(here) {
			return "", nil, &lockkeeper.InputError{Field: "directory", Value: dir,
				Reason: "no root found: neither it nor a directory above it has " + dirName + "/" + markerName,
				Next:   "lockkeeper init, in the root of the codebase"}
		}
	}
}

// refuseInner refuses a root inside of another one that this user made: init makes no such
// thing, and whoever puts a marker there by other means would have the files below it
// covered by locks that nobody else asks for.
func refuseInner(root string, env func(string) (string, bool)) error {
	state, err := stateDir(env)
	if err != nil {
		return err
	}
	for here := filepath.Dir(root); here != filepath.Dir(here); here = filepath.Dir(here) {
		if m, err := readMarker(here); m == nil && err == nil {
			continue
		}
		if seen, err := worldOf(state, here).recall(); seen != nil || err != nil {
			return &lockkeeper.StoreError{Store: markerPath(root), Reason: "it lies inside the root " + here + ", whose locks already cover it", Err: err,
				Next: "remove " + filepath.Join(root, dirName) + "; if its locks are the ones to stay, remove " + filepath.Join(here, dirName)}
		}
	}
	return nil
}

// realDir returns the one name of an existing directory: without links and, where a
// directory is mounted in several places, the same name from each of them. So a root
// has one lock world, whichever way leads to it.
func realDir(dir string) (string, error) {
	path, err := filepath.Abs(dir)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	var info fs.FileInfo
	if err == nil {
		info, err = os.Stat(path)
	}
	if err == nil && !info.IsDir() {
		err = errors.New("not a directory")
	}
	if err != nil {
		return "", &lockkeeper.InputError{Field: "directory", Value: dir, Reason: reasonOf(err), Next: "give a directory that exists and that you may read"}
	}
	if names := mountedNames(path); len(names) > 0 {
		path = names[0]
	}
	return path, nil
}

// reasonOf is an error of the disk without the path, which is told elsewhere.
func reasonOf(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return err.Error()
}

// isUUID reports whether s is spelled as ids are here, so that it may become a
// file name.
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return false
			}
		case !('0' <= c && c <= '9' || 'a' <= c && c <= 'f'):
			return false
		}
	}
	return true
}
