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
	"slices"
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
	Staged    bool       `json:"staged,omitempty"`  // what is staged there, and not what the work tree has
	Deleted   bool       `json:"deleted,omitempty"` // nothing is there
	Modified  time.Time  `json:"modified,omitzero"` // not known of what only git has
	Landing   uint64     `json:"landing,omitempty"`
	Holder    string     `json:"holder,omitempty"`
	GrantID   string     `json:"grant_id,omitempty"`
	HeldFrom  *time.Time `json:"held_from,omitempty"`
	HeldUntil *time.Time `json:"held_until,omitempty"` // none: it is still held
	BeforeLog bool       `json:"before_log,omitempty"` // uncovered because the log does not reach back to whoever may have held it
}

// WorkChanges is what differs from what git has.
type WorkChanges struct {
	List          []WorkChange
	ConfigChanged bool // the file that decides what may be written is among what changed
}

// Changes finds out how each change of the work tree, and of git's index where it
// has another content, came about; or how what is staged did. Lockkeeper's own
// files are left out.
func (a *App) Changes(ctx context.Context, git *Git, stagedOnly bool) (*WorkChanges, error) {
	found, err := git.changed(ctx, stagedOnly)
	if err != nil {
		return nil, err
	}
	done := &WorkChanges{}
	found = slices.DeleteFunc(found, func(c gitChange) bool {
		done.ConfigChanged = done.ConfigChanged || c.path == config.FileName
		return c.path == config.FileName || c.path == dirName+"/" || lockkeeper.IsAncestor(dirName, c.path)
	})
	for i, c := range found {
		found[i].path = a.nameOf(c.path)
	}
	j, err := a.judge(ctx, git, found)
	if err != nil {
		return nil, err
	}
	defer j.tree.Close()
	done.List = make([]WorkChange, len(found))
	var unexplained []*WorkChange
	for i, c := range found {
		w := &done.List[i]
		w.Path = c.path
		if err := j.explain(w, c.staged); err != nil {
			return nil, err
		}
		if w.State == ChangeUncovered && !w.Modified.IsZero() {
			unexplained = append(unexplained, w)
		}
	}
	return done, a.cover(ctx, unexplained)
}

// judge is what changes are held against.
type judge struct {
	tree    *os.Root
	landed  map[string]lockkeeper.Left
	writers writers
	sums    map[string][sha256.Size]byte // of what is staged and nowhere else
}

func (a *App) judge(ctx context.Context, git *Git, found []gitChange) (*judge, error) {
	j := &judge{}
	paths := make([]string, len(found))
	for i, c := range found {
		paths[i] = c.path
	}
	err := a.store.View(ctx, func(r lockkeeper.Reader) (err error) {
		j.landed, err = r.Landed("", paths...)
		return err
	})
	if err != nil {
		return nil, err
	}
	if j.writers, err = a.writers(ctx); err != nil {
		return nil, err
	}
	var ids []string
	for _, c := range found {
		if _, ok := j.landed[c.path]; ok && c.staged != nil && !c.staged.same {
			ids = append(ids, c.staged.id)
		}
	}
	if j.sums, err = git.sums(ctx, ids); err != nil {
		return nil, err
	}
	j.tree, err = os.OpenRoot(a.Root.Dir())
	return j, err
}

// explain finds out how a change came about, as far as the present tells. What is
// staged and differs from the file has no time of its own, so no lock of the past
// can be shown to cover it.
func (j *judge) explain(w *WorkChange, staged *blob) (err error) {
	w.State = ChangeUncovered
	left, landed := j.landed[w.Path]
	if staged != nil && !staged.same {
		w.Staged, w.Deleted = true, staged.mode == modeNothing
		landed = landed && staged.isLeft(left.Version, j.sums)
	} else {
		if w.Modified, w.Deleted, err = modifiedAt(j.tree, w.Path); err != nil {
			return err
		}
		if landed {
			now, err := versionAt(j.tree, w.Path)
			if err != nil {
				return err
			}
			landed = now == left.Version
		}
	}
	if landed {
		w.State, w.Landing = ChangeLanded, left.Seq
	} else if held := j.writers.of(w.Path); held != nil {
		w.State, w.Holder, w.GrantID, w.HeldFrom = ChangeCovered, held.Holder, held.ID, &held.AcquiredAt
	}
	return nil
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

// Writer finds who holds a path for writing; nil for nobody.
func (a *App) Writer(ctx context.Context, path string) (*lock.Entry, error) {
	held, err := a.writers(ctx)
	return held.of(path), err
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
