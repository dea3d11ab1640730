package acts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/encoding/shellword"
	"lockkeeper/internal/git"
	"lockkeeper/internal/git/coverage"
	"lockkeeper/internal/git/gitcmd"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session"
)

// A CommitRequest asks for a git commit of the caller's own changes.
type CommitRequest struct {
	Message string
	Paths   []string      // files and directories from the root; empty: all that is the caller's
	Wait    time.Duration // how long to wait for other commits
	DryRun  bool          // only list what would be committed
}

// A Committed is the result of a CommitRequest.
type Committed struct {
	Commit string            `json:"commit"`           // empty: git had the changes already, or DryRun was set
	Branch string            `json:"branch,omitempty"` // empty: HEAD was detached
	Paths  []string          `json:"paths"`
	Left   []LeftUncommitted `json:"left,omitempty"` // changes that are not in the commit
}

// A LeftUncommitted is a changed path that a commit leaves out.
type LeftUncommitted struct {
	Path   string `json:"path"`
	Why    string `json:"why"`
	Holder string `json:"holder,omitempty"`     // empty: the file has no holder
	From   string `json:"moved_from,omitempty"` // the path that is locked, if the file was moved
}

// CommitPath returns the path from the root of a file or directory that a caller names. A link
// stands for itself, because git commits the link.
func CommitPath(a *project.Project, name string) (string, error) {
	file := name
	if !filepath.IsAbs(file) {
		file = filepath.Join(a.WorkDir, file)
	}
	if info, err := os.Lstat(file); err == nil && info.Mode()&os.ModeSymlink != 0 {
		dir, err := filepath.EvalSymlinks(filepath.Dir(file))
		if err != nil {
			return "", err
		}
		if rel, err := filepath.Rel(a.Root.Dir(), filepath.Join(dir, filepath.Base(file))); err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel), nil
		}
	}
	l, err := a.Resolve(lockkeeper.Read, name)
	return l.Path, err
}

// commitTarget orders commits among themselves. A commit also reads .git, so it excludes commands
// that rewrite files or history, but not edits of other files.
var commitTarget = lockkeeper.Target{Path: ".lockkeeper/commit", Kind: lockkeeper.Node}

// Commit commits exactly the caller's own changes: files that it holds, and files that it changed
// last and nobody holds. Named files need only be free. Git's index keeps what others have staged.
// While the commit is made, nobody else can acquire its files. A named file that another holder
// has is a *lockkeeper.BlockedError.
func Commit(ctx context.Context, a *project.Project, mine *session.Mine, req CommitRequest) (done *Committed, err error) {
	if strings.TrimSpace(req.Message) == "" && !req.DryRun {
		return nil, &lockkeeper.InputError{Field: "message", Reason: "required", Next: `lockkeeper commit -m "what changed"`}
	}
	env := os.Environ()
	repo, err := git.Open(ctx, a.Root.Dir(), env)
	if err != nil {
		return nil, err
	}
	self, err := process.Self()
	if err != nil {
		return nil, err
	}
	c := &committer{app: a, self: self, mine: mine.And(self), req: req, tree: git.NewWorkTree(a.Root.Dir(), a.Root.Dir(), gitcmd.Outside(env))}
	if req.DryRun {
		_, err := c.choose(ctx)
		return &c.done, err
	}
	order := []lockkeeper.Lock{{Target: commitTarget, Mode: lockkeeper.Write},
		{Target: lockkeeper.Target{Path: lockkeeper.GitTarget, Kind: lockkeeper.File}, Mode: lockkeeper.Read}}
	err = c.holding(ctx, order, req.Wait, func() error {
		chosen, err := c.choose(ctx)
		if err != nil {
			return err
		}
		return c.holding(ctx, c.locks(chosen), 0, func() error { return c.commit(ctx, repo, chosen) })
	})
	return &c.done, err
}

// A committer makes one commit.
type committer struct {
	app  *project.Project
	self lockkeeper.Process
	mine *session.Mine
	req  CommitRequest
	tree *git.WorkTree
	done Committed
}

// holding runs the function work under locks of this process, which end with the process.
func (c *committer) holding(ctx context.Context, locks []lockkeeper.Lock, wait time.Duration, work func() error) error {
	if len(locks) == 0 {
		return work()
	}
	g, err := c.app.Hold(ctx, lockkeeper.Request{Holder: c.mine.Holder(), TTL: ownTTL, Locks: locks, Process: &c.self, Metadata: map[string]string{"reason": "commit"}}, wait)
	if err != nil {
		return err
	}
	keeper := time.AfterFunc(ownTTL/3, g.Keep)
	err = work()
	keeper.Stop()
	return errors.Join(err, g.Release(context.WithoutCancel(ctx)))
}

// choose finds the changes to commit, and records them and the others in the result.
func (c *committer) choose(ctx context.Context) (chosen []coverage.Change, err error) {
	found, err := coverage.Find(ctx, c.app, c.tree, c.mine, false)
	if err != nil {
		return nil, err
	}
	c.done.Paths, c.done.Left = []string{}, nil
	matched := map[string]bool{}
	var conflicts []lockkeeper.ConflictInfo
	for _, x := range found.List {
		name, named := c.names(x.Path)
		matched[name] = matched[name] || named
		switch {
		case slices.Contains(c.done.Paths, x.Path): // the staged version differs from the file
		case len(c.req.Paths) > 0 && !named:
		case x.Owner == coverage.Yours && !x.Staged, x.Owner == "" && named:
			chosen = append(chosen, x)
			c.done.Paths = append(c.done.Paths, x.Path)
		case x.Owner == coverage.Held && name == x.Path:
			conflicts = append(conflicts, lockkeeper.ConflictInfo{Path: x.Path, Kind: lockkeeper.Held, Holder: x.Holder, GrantID: x.GrantID, AcquiredAt: *x.HeldFrom,
				Mode: lockkeeper.Write, BlockingPath: cmp.Or(x.MovedFrom, x.Path), BlockingMode: lockkeeper.Write})
		case x.MovedFrom != "":
			c.leave(LeftUncommitted{Path: x.Path, Why: "another holder has " + x.MovedFrom + ", which was moved there", Holder: x.Holder, From: x.MovedFrom})
		case x.Owner == coverage.Held:
			c.leave(LeftUncommitted{Path: x.Path, Why: "another holder has it", Holder: x.Holder})
		case !x.Staged:
			c.leave(LeftUncommitted{Path: x.Path, Why: "not yours; name it to commit it"})
		}
	}
	if len(conflicts) > 0 {
		return nil, lockkeeper.WithNext(&lockkeeper.BlockedError{Holder: c.mine.Holder(), Conflicts: conflicts},
			"lockkeeper why "+shellword.Printable(conflicts[0].BlockingPath)+", or commit without it: name your own files alone")
	}
	for _, p := range c.req.Paths {
		if !matched[p] {
			return nil, &lockkeeper.InputError{Field: "path", Value: p, Reason: "git sees no change there", Next: "lockkeeper gate changes"}
		}
	}
	if len(chosen) == 0 {
		return nil, &lockkeeper.RefusedError{Act: "commit", Reason: "no change here is yours" + inAll(c.done.Left), Next: "lockkeeper gate changes; name the files to commit: lockkeeper commit -m … PATH"}
	}
	return chosen, nil
}

func inAll(left []LeftUncommitted) string {
	if len(left) == 0 {
		return ""
	}
	return fmt.Sprintf("; %s is one of %d others", left[0].Path, len(left))
}

func (c *committer) leave(left LeftUncommitted) {
	if !slices.ContainsFunc(c.done.Left, func(l LeftUncommitted) bool { return l.Path == left.Path }) {
		c.done.Left = append(c.done.Left, left)
	}
}

// names returns the path of the request that names a file: the file itself if possible, or a
// directory above it.
func (c *committer) names(path string) (name string, named bool) {
	if slices.Contains(c.req.Paths, path) {
		return path, true
	}
	at := slices.IndexFunc(c.req.Paths, func(p string) bool { return lockkeeper.IsAncestor(p, path) })
	if at < 0 {
		return "", false
	}
	return c.req.Paths[at], true
}

// locks returns the locks that keep others from acquiring the chosen files: those that the caller
// does not hold already. A file that no lock has covered needs a write lock, because the hook of
// git asks for one.
func (c *committer) locks(chosen []coverage.Change) (list []lockkeeper.Lock) {
	for _, x := range chosen {
		l := lockkeeper.Lock{Target: lockkeeper.Target{Path: x.Path, Kind: lockkeeper.File}, Mode: lockkeeper.Read}
		held := x.GrantID != "" && x.HeldUntil == nil
		if x.State == coverage.Uncovered {
			l.Mode = lockkeeper.Write
		}
		if l.Validate() == nil && !held {
			list = append(list, l)
		}
	}
	return list
}

// commit commits the chosen files, except those that another holder changed before they were
// locked. Later changes are not locked, and stay out.
func (c *committer) commit(ctx context.Context, repo *git.Repo, locked []coverage.Change) error {
	if _, err := c.choose(ctx); err != nil {
		return err
	}
	c.done.Paths = slices.DeleteFunc(c.done.Paths, func(p string) bool {
		return !slices.ContainsFunc(locked, func(x coverage.Change) bool { return x.Path == p })
	})
	made, err := repo.Commit(ctx, git.Commit{Paths: c.done.Paths, Message: c.req.Message})
	c.done.Commit, c.done.Branch = made.Hash, made.Branch
	for _, l := range made.Left {
		c.done.Paths = slices.DeleteFunc(c.done.Paths, func(p string) bool { return p == l.Path })
		c.leave(LeftUncommitted{Path: l.Path, Why: l.Reason})
	}
	if made.Hash != "" {
		err = errors.Join(err, c.mine.Committed(made.Hash))
	}
	return err
}
