package session

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/git"
	"lockkeeper/internal/project/protect"
	"lockkeeper/internal/session/refusal"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// A Rewriting is a git command that rewrites files or history.
type Rewriting struct {
	Act   string // the act as the command spells it
	Dir   string // the directory in which the command runs
	Reach func(context.Context) (git.Reach, error)
}

// Rewrite acquires the .git target of a work tree for a git command, until the command ends. It is
// refused while another command holds the target. It is also refused while another session, or
// another subagent of this one, holds files in this work tree that the command may change.
func (s *Session) Rewrite(ctx context.Context, w Rewriting) ([]refusal.Refusal, error) {
	if err := s.EndRewrite(ctx); err != nil { // ends the mark of a command whose end was not reported
		return nil, err
	}
	tree := s.registry.treeOf(w.Dir)
	gitLock := tree.lock()
	g, err := s.registry.app.Acquire(ctx, s.request([]lockkeeper.Lock{gitLock}), 0)
	if lock.IsBlocked(err) {
		found, err := s.others(ctx, []lockkeeper.Lock{gitLock})
		if err != nil {
			return nil, err
		}
		if len(found) == 0 { // the holder released the lock just now; the agent may retry
			found = []lockkeeper.ConflictInfo{{Holder: "another session", AcquiredAt: s.registry.now()}}
		}
		who, err := s.registry.Who(ctx, found[0])
		return []refusal.Refusal{refusal.Rewrites(w.Act, gitLock.Path, who, len(found)-1)}, err
	}
	if err != nil {
		return nil, err
	}
	s.rec.Git = g.ID
	refused, err := s.disturbs(ctx, w, tree)
	if err != nil || len(refused) > 0 {
		if ending := s.EndRewrite(ctx); ending != nil {
			return nil, ending
		}
	}
	return refused, err
}

// disturbs refuses a git command that may change files of others. It asks what the command would
// change only if others hold files in its work tree.
func (s *Session) disturbs(ctx context.Context, w Rewriting, tree workTree) ([]refusal.Refusal, error) {
	found, err := s.filesOfOthers(ctx, tree.has)
	subagents := s.busySubagents(func(p string) bool { return tree.has(lockkeeper.Lock{Target: lockkeeper.Target{Path: p}}) })
	if err != nil || len(found)+len(subagents) == 0 {
		return nil, err
	}
	r, err := w.Reach(ctx)
	if err != nil {
		return nil, err
	}
	if !r.All {
		changed := map[string]bool{}
		for _, f := range r.Files {
			changed[s.registry.relative(f)] = true
		}
		found = slices.DeleteFunc(found, func(c lockkeeper.ConflictInfo) bool { return !reaches(changed, c.BlockingPath) })
		subagents = s.busySubagents(func(p string) bool { return reaches(changed, p) })
	}
	switch {
	case len(subagents) > 0:
		return []refusal.Refusal{refusal.RewritesSubagent(w.Act, subagents[0])}, nil
	case len(found) == 0:
		return nil, nil
	}
	who, err := s.registry.Who(ctx, found[0])
	return []refusal.Refusal{refusal.Rewrites(w.Act, found[0].BlockingPath, who, len(found)-1)}, err
}

// reaches reports whether a path, or a file or directory below or above it, is among changed paths.
func reaches(changed map[string]bool, path string) bool {
	if changed[path] {
		return true
	}
	for c := range changed {
		if lockkeeper.IsAncestor(path, c) || lockkeeper.IsAncestor(c, path) {
			return true
		}
	}
	return false
}

// filesOfOthers lists the locks of others on the files that the function has selects. Locks of a
// session in another copy of the codebase do not concern this one.
func (s *Session) filesOfOthers(ctx context.Context, has func(lockkeeper.Lock) bool) ([]lockkeeper.ConflictInfo, error) {
	var locks []lockkeeper.Lock
	err := s.registry.app.Store.View(ctx, func(r store.Reader) error {
		grants, err := s.registry.app.Locks.GrantsIn(r)
		for _, g := range grants {
			if g.ID == s.rec.GrantID || s.registry.isElsewhere(g.Metadata) {
				continue
			}
			for _, l := range g.Locks {
				if (l.Kind == lockkeeper.File || l.Kind == lockkeeper.Dir) && !isReserved(l.Path) && has(l) && len(locks) < lockkeeper.MaxTargets {
					l.Mode = lockkeeper.Write // a rewrite also disturbs readers
					locks = append(locks, l)
				}
			}
		}
		return err
	})
	if err != nil || len(locks) == 0 {
		return nil, err
	}
	return s.others(ctx, locks) // others leaves out dead holders
}

// EndRewrite releases .git if a git command of the session holds it.
func (s *Session) EndRewrite(ctx context.Context) error {
	if s.rec.Git == "" {
		return nil
	}
	_, err := s.registry.app.Release(ctx, s.rec.Git)
	if err == nil {
		s.rec.Git = ""
	}
	return err
}

// rewriting refuses paths while another session rewrites files with git in their work tree.
func (s *Session) rewriting(ctx context.Context, paths []string) ([]refusal.Refusal, error) {
	var locks []lockkeeper.Lock
	for _, p := range paths {
		l := s.registry.treeOf(filepath.Dir(s.registry.at(p))).lock()
		l.Mode = lockkeeper.Read // a commit reads the target, and does not change files
		if !slices.Contains(locks, l) {
			locks = append(locks, l)
		}
	}
	found, err := s.others(ctx, locks)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	who, err := s.registry.Who(ctx, found[0])
	return []refusal.Refusal{refusal.Busy(paths[0], who)}, err
}

// workTree is a work tree of git in a codebase: the codebase's own, or one below it.
type workTree struct {
	of  *Registry
	top string // top of the work tree, from the root; empty: the codebase's own
	sub map[string]string
}

// treeOf returns the work tree around a directory.
func (b *Registry) treeOf(dir string) workTree {
	return workTree{of: b, top: topBelow(b.app.Root.Dir(), protect.Real(dir)), sub: map[string]string{}}
}

// topBelow returns the innermost directory below a root that has its own .git, from the root, or "".
func topBelow(root, dir string) string {
	for ; lockkeeper.IsAncestor(root, dir); dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, lockkeeper.GitTarget)); err == nil {
			return strings.TrimPrefix(dir, root+"/")
		}
	}
	return ""
}

// lock returns the lock of a command that rewrites the work tree.
func (t workTree) lock() lockkeeper.Lock { return write(path.Join(t.top, lockkeeper.GitTarget)) }

// has reports whether a locked file is in the work tree, or a locked directory around it or in it.
func (t workTree) has(l lockkeeper.Lock) bool {
	if t.top != "" && lockkeeper.IsAncestor(l.Path, t.top) {
		return true
	}
	dir := path.Dir(l.Path)
	top, known := t.sub[dir]
	if !known {
		root := t.of.app.Root.Dir()
		top = topBelow(root, filepath.Join(root, dir))
		t.sub[dir] = top
	}
	return top == t.top
}

func (b *Registry) relative(file string) string {
	rel, err := filepath.Rel(b.app.Root.Dir(), protect.Real(file))
	if err != nil {
		return file
	}
	return filepath.ToSlash(rel)
}

// isElsewhere reports whether a grant is of a session in another copy of the codebase, as
// PostgreSQL allows.
func (b *Registry) isElsewhere(facts map[string]string) bool {
	root := facts[keyRoot]
	return root != "" && root != b.app.Root.Dir()
}
