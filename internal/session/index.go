package session

import (
	"context"
	"path/filepath"
	"slices"

	"lockkeeper"
	"lockkeeper/internal/session/refusal"
)

// Indexed refuses a git command that would stage, unstage or commit changes of others: of files
// that another holder has locked for writing, or that another subagent of the session works on.
// The files are absolute. It claims nothing and leaves no ticket, because the session does not
// want to write them.
func (s *Session) Indexed(ctx context.Context, act string, files []string) ([]refusal.Refusal, error) {
	paths, err := s.registry.everHeld(ctx, files)
	if err != nil || len(paths) == 0 {
		return nil, err
	}
	if others := s.busySubagents(func(p string) bool { return slices.Contains(paths, p) }); len(others) > 0 {
		return []refusal.Refusal{refusal.CommitsSubagent(act, others[0])}, nil
	}
	found, err := s.holders(ctx, paths)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(c lockkeeper.ConflictInfo) bool { return c.BlockingMode != lockkeeper.Write })
	if len(found) == 0 {
		return nil, nil
	}
	who, err := s.registry.Who(ctx, found[0])
	return []refusal.Refusal{refusal.Commits(act, found[0].Path, who, len(found)-1)}, err
}

// everHeld returns the paths of the absolute files that are or were held, or are below such a
// path. Asking the store about every file of a large change would take too long.
func (b *Registry) everHeld(ctx context.Context, files []string) (paths []string, err error) {
	if len(files) == 0 {
		return nil, nil
	}
	list, err := b.heldPaths(ctx)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	held := make(map[string]bool, len(list))
	for _, p := range list {
		held[p] = true
	}
	for _, f := range files {
		rel, err := filepath.Rel(b.app.Root.Dir(), f)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		rel = filepath.ToSlash(rel)
		if held[rel] || held[lockkeeper.Root] || isBelow(held, rel) {
			paths = append(paths, rel)
		}
	}
	return paths, nil
}
