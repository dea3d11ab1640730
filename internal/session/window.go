package session

import (
	"context"

	"lockkeeper"
	"lockkeeper/internal/session/refusal"
)

// OfProcess returns the session of a host's process, or the zero Info. Another client of the
// same process, such as its MCP server, joins that session, so that the two do not conflict.
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

// Blocker is a holder that keeps a session from writing a path now.
type Blocker struct {
	Path    string         `json:"path"`
	Holder  refusal.Holder `json:"holder"`
	GrantID string         `json:"grant"`
}

// Blockers lists the holders that keep this session from writing some paths. It claims
// nothing and leaves no ticket.
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
