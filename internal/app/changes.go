package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/internal/config"
	"lockkeeper/lock"
)

// How a change of the work tree came about.
const (
	ChangeLanded    = "landed"    // it is what the gate left there
	ChangeCovered   = "covered"   // somebody holds a write lock on it, or did when it was made
	ChangeUncovered = "uncovered" // neither
)

// WorkChange is one path that differs from what git has.
type WorkChange struct {
	Path      string     `json:"path"`
	State     string     `json:"state"`
	Modified  time.Time  `json:"modified"`
	Landing   uint64     `json:"landing,omitempty"`
	Holder    string     `json:"holder,omitempty"`
	GrantID   string     `json:"grant_id,omitempty"`
	HeldFrom  *time.Time `json:"held_from,omitempty"`
	HeldUntil *time.Time `json:"held_until,omitempty"` // none: it is still held
	BeforeLog bool       `json:"before_log,omitempty"` // uncovered because the log does not reach back to whoever may have held it
}

// Changes finds out how each change of the work tree, or of git's index, came
// about. Lockkeeper's own files are left out.
func (a *App) Changes(ctx context.Context, git *Git, staged bool) ([]WorkChange, error) {
	paths, err := a.changedPaths(ctx, git, staged)
	if err != nil {
		return nil, err
	}
	var landed map[string]lockkeeper.Left
	err = a.store.View(ctx, func(r lockkeeper.Reader) error {
		landed, err = r.Landed("", paths...)
		return err
	})
	if err != nil {
		return nil, err
	}
	writers, err := a.writers(ctx)
	if err != nil {
		return nil, err
	}
	tree, err := os.OpenRoot(a.Root.Dir())
	if err != nil {
		return nil, err
	}
	defer tree.Close()
	list := make([]WorkChange, len(paths))
	var unexplained []*WorkChange
	for i, path := range paths {
		c := &list[i]
		c.Path, c.State = path, ChangeUncovered
		if c.Modified, err = modifiedAt(tree, path); err != nil {
			return nil, err
		}
		if err := c.compare(tree, landed); err != nil {
			return nil, err
		}
		if w := writers.of(path); w != nil && c.State == ChangeUncovered {
			c.State, c.Holder, c.GrantID, c.HeldFrom = ChangeCovered, w.Holder, w.ID, &w.AcquiredAt
		}
		if c.State == ChangeUncovered {
			unexplained = append(unexplained, c)
		}
	}
	return list, a.cover(ctx, unexplained)
}

// compare finds out whether a change is what the newest landing there left.
func (c *WorkChange) compare(tree *os.Root, landed map[string]lockkeeper.Left) error {
	left, ok := landed[c.Path]
	if !ok {
		return nil
	}
	now, err := versionAt(tree, c.Path)
	if err == nil && now == left.Version {
		c.State, c.Landing = ChangeLanded, left.Seq
	}
	return err
}

// changedPaths lists what git says is changed under the names that locks have.
func (a *App) changedPaths(ctx context.Context, git *Git, staged bool) ([]string, error) {
	changed, err := git.changed(ctx, staged)
	if err != nil {
		return nil, err
	}
	paths := changed[:0]
	for _, path := range changed {
		if path == config.FileName || path == dirName+"/" || lockkeeper.IsAncestor(dirName, path) {
			continue
		}
		paths = append(paths, a.nameOf(path))
	}
	return paths, nil
}

// nameOf is the name under which locks know a path that git names. A link stands
// for itself: that it changed says nothing about the file it leads to.
func (a *App) nameOf(path string) string {
	name := strings.TrimSuffix(path, "/")
	info, err := os.Lstat(filepath.Join(a.Root.Dir(), filepath.FromSlash(name)))
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return name
	}
	if l, err := a.Root.Resolve("", path, lockkeeper.Write); err == nil {
		return l.Path
	}
	return name // nothing that could be locked
}

// writers is everything that is held for writing, by path.
type writers map[string]*lock.Entry

func (a *App) writers(ctx context.Context) (writers, error) {
	entries, err := a.Locks.Entries(ctx)
	if err != nil {
		return nil, err
	}
	held := writers{}
	for i := range entries {
		e := &entries[i]
		if e.State != "held" && e.State != "landing" {
			continue
		}
		for _, path := range e.WritePaths {
			held[path] = e
		}
	}
	return held, nil
}

// of finds who holds a path, or a directory above it with all that is in it; nil
// for nobody.
func (w writers) of(path string) *lock.Entry {
	for here, more := path, true; more; here, more = lockkeeper.Parent(here) {
		if found := w[here]; found != nil {
			return found
		}
	}
	return nil
}

// versionAt is what a path of the tree holds. What is neither a file nor nothing
// is a version that no landing of a file left.
func versionAt(tree *os.Root, path string) (v lockkeeper.Version, err error) {
	info, err := tree.Lstat(filepath.FromSlash(path))
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR):
		return v, nil
	case err != nil:
		return v, err
	case !info.Mode().IsRegular():
		return lockkeeper.Version{Kind: lockkeeper.Dir}, nil
	}
	f, err := tree.OpenFile(filepath.FromSlash(path), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return v, err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	v = lockkeeper.Version{Kind: lockkeeper.File, Mode: info.Mode().Perm()}
	sum.Sum(v.Sum[:0])
	return v, errors.Join(err, f.Close())
}

// ParseBase reads what a path is expected to hold: "nothing", a version in full,
// or the SHA-256 of its content alone, whatever its mode is.
func (a *App) ParseBase(path, text string) (*lockkeeper.Version, error) {
	var v lockkeeper.Version
	if len(text) != 2*sha256.Size {
		return &v, v.UnmarshalText([]byte(text))
	}
	info, err := os.Lstat(filepath.Join(a.Root.Dir(), filepath.FromSlash(path)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	mode := fs.FileMode(0o644)
	if info != nil {
		mode = info.Mode().Perm()
	}
	return &v, v.UnmarshalText(fmt.Appendf(nil, "%s %04o %s", lockkeeper.File, mode, text))
}
