package overlay

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// A Stack describes one overlay mount. Its paths are absolute, and nothing else uses Upper and
// Work during the mount.
type Stack struct {
	Lower []string // directories, the uppermost first; nothing changes them
	Upper string   // holds the changes; "" makes the mount read-only
	Work  string   // a directory for the kernel, on the mount of Upper; it is emptied first
}

// check refuses a stack that cannot be mounted.
func (s Stack) check() error {
	if len(s.Lower) == 0 {
		return errors.New("overlay: no lower directory")
	}
	if (s.Upper == "") != (s.Work == "") {
		return errors.New("overlay: Upper and Work must be set together")
	}
	for _, path := range s.paths() {
		if !filepath.IsAbs(path) || filepath.Clean(path) != path {
			return fmt.Errorf("overlay: %q is not a clean absolute path", path)
		}
	}
	return nil
}

// paths returns all directories of the stack, with Lower first.
func (s Stack) paths() []string {
	if s.Upper == "" {
		return s.Lower
	}
	return append(slices.Clone(s.Lower), s.Upper, s.Work)
}

// Empty removes what a mount left in a directory, such as Work. The kernel leaves directories there
// that an ordinary user may not read, so os.RemoveAll fails.
func Empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.IsDir() {
			if err := os.Chmod(path, 0o700); err != nil {
				return err
			}
			if err := Empty(path); err != nil {
				return err
			}
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
