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
// enters the root, and returns the remaining segments. It recognizes the root by
// identity, not by its path, so a root behind a link is still the root. It follows
// nothing below the root: that is the task of walk.
func (r *Root) locate(path string) (below []string, inside bool, err error) {
	// Most paths begin with the root's real path, which one stat confirms.
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
		if links++; links > maxAttempts {
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
