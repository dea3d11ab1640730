package session

import (
	"context"

	"lockkeeper"
	"lockkeeper/internal/session/refusal"
)

// OfProcess is the session that sits in a window; the zero Info when none does. Whoever
// else speaks for the same window, as its MCP server does, joins it: else a window would
// be in its own way.
func (b *Registry) OfProcess(window *lockkeeper.Process) (Info, error) {
	known, err := b.records()
	if err != nil {
		return Info{}, err
	}
	var last Info
	for _, r := range known {
		if !r.Ended && sameProcess(r.Process, window) && r.Seen.After(last.Seen) {
			last = r.Info
		}
	}
	return last, nil
}

// Blocker is one that keeps a session from writing a path now.
type Blocker struct {
	Path    string         `json:"path"`
	Holder  refusal.Holder `json:"holder"`
	GrantID string         `json:"grant"`
}

// Blockers lists who keeps this session from writing some paths. It claims nothing, and
// leaves no ticket.
func (s *Session) Blockers(ctx context.Context, paths ...string) (list []Blocker, err error) {
	found, err := s.others(ctx, writes(paths))
	if err != nil {
		return nil, err
	}
	for _, c := range found {
		who, err := s.registry.who(ctx, c)
		if err != nil {
			return nil, err
		}
		list = append(list, Blocker{Path: c.Path, Holder: who, GrantID: c.GrantID})
	}
	return list, nil
}
