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
	"lockkeeper/store"
)

// These are the origins of a change in the work tree.
const (
	Landed    = "landed"    // the gate landed the change
	Covered   = "covered"   // a holder has a write lock on the path, or had one at the time of the change
	Uncovered = "uncovered" // neither Landed nor Covered
)

// A Change is one path that differs from the last commit.
type Change struct {
	Path      string     `json:"path"`
	State     string     `json:"state"`
	Owner     string     `json:"owner,omitempty"`   // Yours, Held, or empty
	Staged    bool       `json:"staged,omitempty"`  // the change is in the index, not in the work tree
	Deleted   bool       `json:"deleted,omitempty"` // the path was deleted
	Modified  time.Time  `json:"modified,omitzero"` // unknown if the change is only in the index
	Landing   uint64     `json:"landing,omitempty"`
	Holder    string     `json:"holder,omitempty"`
	GrantID   string     `json:"grant_id,omitempty"`
	HeldFrom  *time.Time `json:"held_from,omitempty"`
	HeldUntil *time.Time `json:"held_until,omitempty"` // nil while the lock is held
	MovedFrom string     `json:"moved_from,omitempty"` // the path that another holder has, and whose content is here
	BeforeLog bool       `json:"before_log,omitempty"` // uncovered, but the log does not reach back far enough
}

// Changes has the paths that differ from the last commit.
type Changes struct {
	List          []Change
	ConfigChanged bool // lockkeeper.yaml has changed
}

// Find determines the origin and the owner of each change in the work tree and in the index, or
// only in the index. It omits Lockkeeper's own files.
func Find(ctx context.Context, a *project.Project, tree *git.WorkTree, who Caller, stagedOnly bool) (*Changes, error) {
	found, gone, err := tree.Differences(ctx, stagedOnly)
	if err != nil {
		return nil, err
	}
	held, err := heldForWriting(ctx, a)
	if err != nil {
		return nil, err
	}
	gone = slices.DeleteFunc(gone, func(f git.Gone) bool { return held.other(who, nameOf(a, f.Path)) == nil })
	moved, err := tree.Moved(ctx, gone, found)
	if err != nil {
		return nil, err
	}
	done := &Changes{}
	found = slices.DeleteFunc(found, func(c git.Difference) bool {
		done.ConfigChanged = done.ConfigChanged || c.Path == config.FileName
		return c.Path == config.FileName || c.Path == project.DirName+"/" || lockkeeper.IsAncestor(project.DirName, c.Path) || isDocument(a, c.Path)
	})
	from := make([]string, len(found))
	for i, c := range found {
		if old, is := moved[c.Path]; is {
			from[i] = nameOf(a, old)
		}
		found[i].Path = nameOf(a, c.Path)
	}
	j, err := newJudge(ctx, a, tree, found, held)
	if err != nil {
		return nil, err
	}
	defer j.tree.Close()
	done.List = make([]Change, len(found))
	var unexplained []*Change
	for i, c := range found {
		w := &done.List[i]
		w.Path, w.MovedFrom = c.Path, from[i]
		if err := j.explain(w, c.Staged); err != nil {
			return nil, err
		}
		if w.State == Uncovered && !w.Modified.IsZero() {
			unexplained = append(unexplained, w)
		}
	}
	if err := cover(ctx, a, unexplained); err != nil {
		return nil, err
	}
	return done, j.assign(ctx, a, who, done.List)
}

// isDocument reports whether a path is one of the documents of runs, or their directory. Runs write them without the
// gate, and people commit them to share a run.
func isDocument(a *project.Project, path string) bool {
	path = strings.TrimSuffix(path, "/")
	return slices.ContainsFunc([]string{a.Config.Run.SidecarDir, a.Config.Run.AnalysisDir}, func(dir string) bool {
		return path == dir || lockkeeper.IsAncestor(dir, path)
	})
}

// A judge has the facts that explain the origins of changes.
type judge struct {
	tree    *os.Root
	landed  map[string]store.LandedVersion
	writers writers
	sums    map[string][sha256.Size]byte // hashes of content that is only staged
}

func newJudge(ctx context.Context, a *project.Project, tree *git.WorkTree, found []git.Difference, held writers) (*judge, error) {
	j := &judge{writers: held}
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

// explain determines the origin of a change from the last landing and the current locks.
// Content that is only staged has no time, so no past lock can cover it.
func (j *judge) explain(w *Change, staged *git.Blob) (err error) {
	w.State = Uncovered
	left, landed := j.landed[w.Path]
	if staged != nil && !staged.Same {
		w.Staged, w.Deleted = true, staged.Mode == git.ModeNothing
		landed = landed && staged.Has(left.Version, j.sums)
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
		w.State, w.Landing, w.MovedFrom = Landed, left.Seq, ""
	} else if held := j.writers.of(w.Path); held != nil {
		w.State, w.Holder, w.GrantID, w.HeldFrom = Covered, held.Holder, held.ID, &held.AcquiredAt
	}
	return nil
}

// nameOf returns the lock path of a path of git. A link stands for itself, because its
// change does not affect the file it points to.
func nameOf(a *project.Project, path string) string {
	name := strings.TrimSuffix(path, "/")
	info, err := os.Lstat(filepath.Join(a.Root.Dir(), filepath.FromSlash(name)))
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return name
	}
	if l, err := a.Root.Resolve("", path, lockkeeper.Write); err == nil {
		return l.Path
	}
	return name // the path cannot be locked
}

// versionAt returns the version of a path of the tree. For anything other than a regular file it
// returns a version that no landing has.
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
