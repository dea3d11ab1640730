//go:build unix

package tree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// locate follows an absolute path from the top of the file system until it
// enters the root, and returns the segments still to go from there. The root is
// recognised by being the same directory, not by how its path is spelled, so a
// root that is also reached through a link is still the root. From there on
// nothing is followed: that is the walk's part, beneath the open root.
func (r *Root) locate(path string) (below []string, inside bool, err error) {
	// The usual spelling begins with the root's real path: one look confirms it.
	if rest, ok := strings.CutPrefix(path, r.path); ok && (rest == "" || rest[0] == '/') {
		if info, err := os.Lstat(r.path); err == nil && os.SameFile(info, r.info) {
			below, _ = segments(rest)
			return below, true, nil
		}
	}
	here := "/"
	info, err := os.Lstat(here)
	if err != nil {
		return nil, false, err
	}
	rest, _ := segments(path)
	links := 0
	for {
		if os.SameFile(info, r.info) {
			return rest, true, nil
		}
		if len(rest) == 0 {
			return nil, false, nil
		}
		next := filepath.Join(here, rest[0]) // here is real, so ".." is its parent
		if info, err = os.Lstat(next); err != nil {
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG) {
				return nil, false, nil
			}
			return nil, false, err
		}
		rest = rest[1:]
		if info.Mode()&fs.ModeSymlink == 0 {
			here = next
			continue
		}
		if links++; links > maxTurns {
			return nil, false, syscall.ELOOP
		}
		link, err := os.Readlink(next)
		if err != nil {
			return nil, false, err
		}
		if filepath.IsAbs(link) {
			here = "/"
		}
		if info, err = os.Lstat(here); err != nil {
			return nil, false, err
		}
		to, _ := segments(link)
		rest = slices.Concat(to, rest)
	}
}
