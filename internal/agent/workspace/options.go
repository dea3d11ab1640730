package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/machine/disk"
)

// Options configures Make.
type Options struct {
	Root string // the shared tree
	Dir  string // the directory of workspaces, outside Root; created if it is missing

	// Landed returns the paths of all landings after a number, and the number of the
	// last landing. It includes every decided landing, and returns only when all of
	// them are complete or undone. So if it returns nothing new, no landing was in
	// progress since the previous call. If it is nil, nothing lands while the
	// workspace is made.
	Landed func(ctx context.Context, after uint64) (paths []string, last uint64, err error)
	After  uint64 // a landing that is known to be in the tree

	// Linked are folders of dependencies, relative to Root. If Sealed says that the
	// agent cannot write to them, they become links to the shared ones. Otherwise
	// they are copied.
	Linked []string
	Sealed bool

	// Without are paths relative to Root that are neither copied nor refreshed, with
	// everything below them. For the workspace they do not exist: what an agent creates
	// there is a change like any other, and git reports tracked files as deleted.
	Without []string

	Sums *Sums // shared by the workspaces of a process; may be nil

	Keep bool // the base stays for the next process
}

// stateDir is Lockkeeper's own directory, which is not part of the tree.
const stateDir = ".lockkeeper"

const gitName = lockkeeper.GitTarget

// check resolves both directories, creates Dir, and refuses a Dir inside Root.
func (o *Options) check() (err error) {
	if o.Root, err = realDir(o.Root); err != nil {
		return &lockkeeper.InputError{Field: "root", Value: o.Root, Reason: disk.Reason(err), Next: "name the directory of the codebase"}
	}
	if o.Linked, err = cleanAll(o.Linked); err != nil {
		return err
	}
	if o.Without, err = cleanAll(o.Without); err != nil {
		return err
	}
	if slices.Contains(o.Without, ".") {
		return &lockkeeper.InputError{Field: "paths to omit", Value: ".", Reason: "nothing would be copied", Next: "name something below the root"}
	}
	refuse := func(reason, next string) error {
		return &lockkeeper.InputError{Field: "directory of workspaces", Value: o.Dir, Reason: reason, Next: next}
	}
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return err
	}
	inside, err := isBelow(o.Dir, o.Root)
	switch {
	case err != nil:
		return refuse(disk.Reason(err), "name a directory that you may create and write to")
	case inside:
		return refuse("inside the codebase "+o.Root, "name a directory outside it")
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return refuse(disk.Reason(err), "name a directory that you may create and write to")
	}
	if o.Dir, err = realDir(o.Dir); err != nil {
		return refuse(disk.Reason(err), "name a directory")
	}
	if strings.ContainsRune(o.Dir, os.PathListSeparator) {
		return refuse(fmt.Sprintf("contains %q, which separates the paths in a variable of git", os.PathListSeparator), "name another directory")
	}
	return nil
}

// isBelow reports whether the existing part of a path is in a directory. It compares files,
// not names.
func isBelow(path, dir string) (bool, error) {
	want, err := os.Stat(dir)
	if err != nil {
		return false, err
	}
	for {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			path = real
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || path == filepath.Dir(path) {
			return false, err
		}
		path = filepath.Dir(path)
	}
	for {
		has, err := os.Stat(path)
		if err != nil {
			return false, err
		}
		if os.SameFile(want, has) {
			return true, nil
		}
		if path == filepath.Dir(path) {
			return false, nil
		}
		path = filepath.Dir(path)
	}
}

func realDir(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("no directory given")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return dir, err
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return dir, err
	}
	info, err := os.Stat(real)
	if err == nil && !info.IsDir() {
		err = errors.New("not a directory")
	}
	return real, err
}

func cleanAll(paths []string) (cleaned []string, err error) {
	cleaned = make([]string, len(paths))
	for i, p := range paths {
		if cleaned[i], err = clean(p); err != nil {
			return nil, err
		}
	}
	return cleaned, nil
}

// clean checks a path that is relative to the root.
func clean(path string) (string, error) {
	refuse := func(reason string) (string, error) {
		return "", &lockkeeper.InputError{Field: "path", Value: path, Reason: reason, Next: "give a path relative to the root"}
	}
	trimmed := strings.TrimSuffix(path, "/")
	switch {
	case trimmed == "":
		return refuse("empty")
	case strings.ContainsRune(path, 0):
		return refuse("a NUL byte in a path")
	case len(path) > maxPath:
		return refuse(fmt.Sprintf("longer than %d bytes", maxPath))
	case trimmed == ".":
		return trimmed, nil
	}
	first := true
	for name := range strings.SplitSeq(trimmed, "/") {
		switch {
		case name == "" || name == "." || name == "..":
			return refuse("not a clean path below the root")
		case first && isReserved(name):
			return refuse(name + " is not part of a workspace")
		}
		first = false
	}
	return trimmed, nil
}

// isReserved reports whether a name at the top of a tree is not part of it.
func isReserved(name string) bool { return name == gitName || name == stateDir }

// maxPath is the longest path that can be locked.
const maxPath = 4096
