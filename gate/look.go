package gate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"lockkeeper"
)

// sight is what a commit finds at a path of the tree.
type sight struct {
	version lockkeeper.Version
	changed time.Time // of the file
	dir     *dirID    // its directory; nil: there is none
}

// lookAt looks at a path of the tree. It refuses a file that cannot be replaced.
func (g *Gate) lookAt(path string) (found sight, err error) {
	bad := func(reason, next string) error {
		return &lockkeeper.InputError{Field: "path", Value: path, Reason: reason, Next: next}
	}
	dir, name, err := g.openParent(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return found, nil
	case errors.Is(err, fs.ErrPermission):
		return found, bad("its directory is closed to you", "ask for permission to write there")
	case isElsewhere(err):
		return found, justReplaced(path)
	case err != nil:
		return found, err
	}
	defer dir.Close()
	if err := writable(dir, path); err != nil {
		return found, err
	}
	if found.dir, err = g.identify(dir); err != nil {
		return found, err
	}
	st, err := g.disk.Lstat(dir, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return found, nil
	case err != nil:
		return found, err
	case st.Mode.IsDir():
		return found, bad("a directory, and the gate writes files", "name the files in it")
	case !st.Mode.IsRegular():
		return found, bad("neither a file nor a directory", "write regular files only")
	case st.Links > 1:
		return found, bad(fmt.Sprintf("the file has %d hard links, and its other names would keep the old content", st.Links), "break the link first")
	case st.Mode.Perm()&0o222 == 0:
		return found, bad("the file is read-only", "make it writable first, if it is meant to be changed")
	}
	found.changed = st.Changed
	found.version, err = g.observe(dir, name)
	return found, err
}

// justReplaced refuses a path whose directory was one when the path was resolved.
func justReplaced(path string) error {
	return &lockkeeper.InputError{Field: "path", Value: path, Reason: "its directory has just been replaced by a link, a mount or a file", Next: "look at it, and try again"}
}

// writable refuses a directory in which nothing may be renamed.
func writable(dir *os.File, path string) error {
	info, err := dir.Stat()
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o222 != 0 && mayWrite(dir) {
		return nil
	}
	return &lockkeeper.InputError{Field: "path", Value: path, Reason: "its directory is read-only", Next: "make the directory writable first"}
}

func changedSince(path, grantID string, want, found lockkeeper.Version) error {
	return &lockkeeper.LockViolationError{Check: checkBase, Path: path, GrantID: grantID,
		Reason: fmt.Sprintf("it was changed by somebody else: expected %s, found %s", brief(want), brief(found)),
		Next:   "look at the change, and write again on top of it"}
}

// changedUnder refuses the first write of a grant to a file that changed while the
// grant was held, unless the gate knows its content.
func changedUnder(path, grantID string, changed, since time.Time, found lockkeeper.Version) error {
	return &lockkeeper.LockViolationError{Check: checkBase, Path: path, GrantID: grantID,
		Reason: fmt.Sprintf("it was changed, moved there or given other attributes at %s, after the grant was given at %s, and not through this grant", stamp(changed), stamp(since)),
		Next:   fmt.Sprintf("look at it; to write over it, say so with --base %x", found.Sum)}
}

func stamp(at time.Time) string { return at.UTC().Format("15:04:05.000Z") }

// brief is a version short enough to be read.
func brief(v lockkeeper.Version) string {
	if !v.Exists() {
		return "nothing"
	}
	return fmt.Sprintf("%s %04o %x", v.Kind, v.Mode.Perm(), v.Sum[:6])
}

// missingDirs lists the directories that new files need and that are not there,
// outermost first.
func (g *Gate) missingDirs(items []*item) ([]string, error) {
	var missing []string
	known := map[string]bool{lockkeeper.Root: true}
	for _, it := range items {
		if it.alter.Old.Exists() || it.Delete {
			continue
		}
		for dir, _ := split(it.target); !known[dir]; dir, _ = split(dir) {
			f, err := g.disk.OpenDir(g.root, dir)
			if err == nil {
				known[dir] = true
				if err := errors.Join(writable(f, it.target), g.disk.Close(f)); err != nil {
					return nil, err
				}
				break
			}
			if isElsewhere(err) {
				return nil, justReplaced(it.target)
			}
			if !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			known[dir] = true
			missing = append(missing, dir)
		}
	}
	return unique(missing), nil
}
