package coverage

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/internal/git"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// How a change of the work tree came about.
const (
	Landed    = "landed"    // it is what the gate left there
	Covered   = "covered"   // somebody holds a write lock on it, or did when it was made
	Uncovered = "uncovered" // neither
)

// Change is one path that differs from what git has.
type Change struct {
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

// Changes is what differs from what git has.
type Changes struct {
	List          []Change
	ConfigChanged bool // the file that decides what may be written is among what changed
}

// Find finds out how each change of the work tree, and of git's index where it
// has another content, came about; or how what is staged did. Lockkeeper's own
// files are left out.
func Find(ctx context.Context, a *project.Project, tree *git.WorkTree, stagedOnly bool) (*Changes, error) {
	found, err := tree.Differences(ctx, stagedOnly)
	if err != nil {
		return nil, err
	}
	done := &Changes{}
	found = slices.DeleteFunc(found, func(c git.Difference) bool {
		done.ConfigChanged = done.ConfigChanged || c.Path == config.FileName
		return c.Path == config.FileName || c.Path == project.DirName+"/" || lockkeeper.IsAncestor(project.DirName, c.Path)
	})
	for i, c := range found {
		found[i].Path = nameOf(a, c.Path)
	}
	j, err := newJudge(ctx, a, tree, found)
	if err != nil {
		return nil, err
	}
	defer j.tree.Close()
	done.List = make([]Change, len(found))
	var unexplained []*Change
	for i, c := range found {
		w := &done.List[i]
		w.Path = c.Path
		if err := j.explain(w, c.Staged); err != nil {
			return nil, err
		}
		if w.State == Uncovered && !w.Modified.IsZero() {
			unexplained = append(unexplained, w)
		}
	}
	return done, cover(ctx, a, unexplained)
}

// judge is what changes are held against.
type judge struct {
	tree    *os.Root
	landed  map[string]store.LandedVersion
	writers writers
	sums    map[string][sha256.Size]byte // of what is staged and nowhere else
}

func newJudge(ctx context.Context, a *project.Project, tree *git.WorkTree, found []git.Difference) (*judge, error) {
	j := &judge{}
	paths := make([]string, len(found))
	for i, c := range found {
		paths[i] = c.Path
	}
	err := a.Store.View(ctx, func(r store.Reader) (err error) {
		j.landed, err = r.Landed("", paths...)
		return err
	})
	if err != nil {
		return nil, err
	}
	if j.writers, err = heldForWriting(ctx, a); err != nil {
		return nil, err
	}
	var ids []string
	for _, c := range found {
		if _, ok := j.landed[c.Path]; ok && c.Staged != nil && !c.Staged.Same {
			ids = append(ids, c.Staged.ID)
		}
	}
	if j.sums, err = tree.Sums(ctx, ids); err != nil {
		return nil, err
	}
	j.tree, err = os.OpenRoot(a.Root.Dir())
	return j, err
}

// explain finds out how a change came about, as far as the present tells. What is
// staged and differs from the file has no time of its own, so no lock of the past
// can be shown to cover it.
func (j *judge) explain(w *Change, staged *git.Blob) (err error) {
	w.State = Uncovered
	left, landed := j.landed[w.Path]
	if staged != nil && !staged.Same {
		w.Staged, w.Deleted = true, staged.Mode == git.ModeNothing
		landed = landed && staged.IsLeft(left.Version, j.sums)
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
		w.State, w.Landing = Landed, left.Seq
	} else if held := j.writers.of(w.Path); held != nil {
		w.State, w.Holder, w.GrantID, w.HeldFrom = Covered, held.Holder, held.ID, &held.AcquiredAt
	}
	return nil
}

// nameOf is the name under which locks know a path that git names. A link stands
// for itself: that it changed says nothing about the file it leads to.
func nameOf(a *project.Project, path string) string {
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
type writers map[string]*lock.RequestInfo

func heldForWriting(ctx context.Context, a *project.Project) (writers, error) {
	entries, err := a.Locks.Requests(ctx)
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
func Writer(ctx context.Context, a *project.Project, path string) (*lock.RequestInfo, error) {
	held, err := heldForWriting(ctx, a)
	return held.of(path), err
}

// of finds who holds a path, or a directory above it with all that is in it; nil
// for nobody.
func (w writers) of(path string) *lock.RequestInfo {
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
