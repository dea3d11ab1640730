//go:build unix

package tree

import (
	"errors"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// diskFolds reports whether the whole disk folds case. It changes the case of a name in the
// root to one that the root does not list, and looks that up: a disk that folds case finds
// it. If no name has a letter to change, the kind of disk decides.
func diskFolds(fd int) (bool, error) {
	names, err := list(fd)
	if err != nil {
		return false, err
	}
	for _, name := range names {
		other, ok := swapCase(name)
		if !ok || slices.Contains(names, other) {
			continue
		}
		if _, err := statAt(fd, name); err != nil {
			continue // removed meanwhile
		}
		_, err := statAt(fd, other)
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return false, err
		}
		return err == nil, nil
	}
	return kindFolds(fd)
}

// list reads the names in the directory fd.
func list(fd int) ([]string, error) {
	dir, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(dir), ".")
	defer file.Close()
	return file.Readdirnames(-1)
}
