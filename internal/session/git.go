package session

import (
	"context"

	"lockkeeper"
	"lockkeeper/internal/session/refusal"
	"lockkeeper/lock"
	"lockkeeper/store"
)

var gitLock = write(lockkeeper.GitTarget)

// Rewrite acquires the .git target for a git command that rewrites files or history, until the
// command ends. It is refused while others hold files or .git, and while other subagents of the
// session work on files.
func (s *Session) Rewrite(ctx context.Context, act string) ([]refusal.Refusal, error) {
	if err := s.EndRewrite(ctx); err != nil { // of a command without a reported end
		return nil, err
	}
	if others := s.busySubagents(func(string) bool { return true }); len(others) > 0 {
		return []refusal.Refusal{refusal.RewritesSubagent(act, others[0])}, nil
	}
	g, err := s.registry.app.Acquire(ctx, s.request([]lockkeeper.Lock{gitLock}), 0)
	if lock.IsBlocked(err) {
		found, err := s.others(ctx, []lockkeeper.Lock{gitLock})
		if err != nil {
			return nil, err
		}
		if len(found) == 0 { // the holder released it just now; the agent may retry
			found = []lockkeeper.ConflictInfo{{Holder: "another session", AcquiredAt: s.registry.now()}}
		}
		who, err := s.registry.who(ctx, found[0])
		return []refusal.Refusal{refusal.Rewrites(act, lockkeeper.GitTarget, who, len(found)-1)}, err
	}
	if err != nil {
		return nil, err
	}
	s.rec.Git = g.ID
	refused, err := s.filesOfOthers(ctx, act)
	if err != nil || len(refused) > 0 {
		if ending := s.EndRewrite(ctx); ending != nil {
			return nil, ending
		}
	}
	return refused, err
}

// filesOfOthers refuses a git command while others hold files.
func (s *Session) filesOfOthers(ctx context.Context, act string) ([]refusal.Refusal, error) {
	var locks []lockkeeper.Lock
	err := s.registry.app.Store.View(ctx, func(r store.Reader) error {
		grants, err := s.registry.app.Locks.GrantsIn(r)
		for _, g := range grants {
			for _, l := range g.Locks {
				if g.ID != s.rec.GrantID && (l.Kind == lockkeeper.File || l.Kind == lockkeeper.Dir) && !isReserved(l.Path) && len(locks) < lockkeeper.MaxTargets {
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
	found, err := s.others(ctx, locks) // it ignores dead holders
	if err != nil || len(found) == 0 {
		return nil, err
	}
	who, err := s.registry.who(ctx, found[0])
	return []refusal.Refusal{refusal.Rewrites(act, found[0].BlockingPath, who, len(found)-1)}, err
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

// rewriting refuses paths while another session rewrites files with git.
func (s *Session) rewriting(ctx context.Context, paths []string) ([]refusal.Refusal, error) {
	found, err := s.others(ctx, []lockkeeper.Lock{gitLock})
	if err != nil || len(found) == 0 || len(paths) == 0 {
		return nil, err
	}
	who, err := s.registry.who(ctx, found[0])
	return []refusal.Refusal{refusal.Busy(paths[0], who)}, err
}
