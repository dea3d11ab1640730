package session

import (
	"context"

	"lockkeeper"
	"lockkeeper/internal/session/refusal"
)

// Seated is the session that sits in a window; the zero Session when none does. Whoever
// else speaks for the same window, as its MCP server does, joins it: else a window would
// be in its own way.
func (b *Book) Seated(window *lockkeeper.Process) (Session, error) {
	known, err := b.records()
	if err != nil {
		return Session{}, err
	}
	var last Session
	for _, r := range known {
		if !r.Ended && sameProcess(r.Process, window) && r.Seen.After(last.Seen) {
			last = r.Session
		}
	}
	return last, nil
}

// Obstacle is one that keeps a session from writing a path now.
type Obstacle struct {
	Path    string         `json:"path"`
	Holder  refusal.Holder `json:"holder"`
	GrantID string         `json:"grant"`
}

// InTheWay lists who keeps this session from writing some paths. It claims nothing, and
// leaves no ticket.
func (s *Seat) InTheWay(ctx context.Context, paths ...string) (list []Obstacle, err error) {
	found, err := s.others(ctx, writes(paths))
	if err != nil {
		return nil, err
	}
	for _, c := range found {
		who, err := s.book.who(ctx, c)
		if err != nil {
			return nil, err
		}
		list = append(list, Obstacle{Path: c.Path, Holder: who, GrantID: c.GrantID})
	}
	return list, nil
}
