package session

import (
	"slices"
	"strings"
	"time"

	"lockkeeper/internal/session/refusal"
)

// Subagent is an agent that the one in a window has started: its host runs several at once, in
// one session. What the one in the window has claimed is theirs, too; among each other they
// are kept apart.
type Subagent struct {
	ID   string `json:"-"` // empty: it is the one in the window
	Kind string `json:"kind,omitempty"`

	Seen  time.Time            `json:"seen"`
	Files map[string]time.Time `json:"files"` // that it is at work on, since when
}

// enterAs notes which of the agents in the window calls.
func (s *Session) enterAs(who Subagent) {
	s.inner = who.ID
	if who.ID == "" {
		return
	}
	known := s.rec.Subagents[who.ID]
	known.Kind, known.Seen = who.Kind, s.registry.now()
	s.putSubagent(known)
}

func (s *Session) putSubagent(who Subagent) {
	if s.rec.Subagents == nil {
		s.rec.Subagents = map[string]Subagent{}
	}
	s.rec.Subagents[s.inner] = who
}

// beside refuses what another agent of the window is at work on, of the paths that are
// meant. One that was not heard of for as long as a claim lasts is gone: its end was
// not reported.
func (s *Session) beside(meant func(path string) bool) (list []refusal.Refusal) {
	now, lasts := s.registry.now(), s.registry.app.Config.Policies()[Policy].TTL
	for id, other := range s.rec.Subagents {
		if id == s.inner || now.Sub(other.Seen) > lasts {
			continue
		}
		for p, since := range other.Files {
			if meant(p) {
				list = append(list, refusal.Subagent(p, other.Kind, now.Sub(since)))
			}
		}
	}
	slices.SortFunc(list, func(r, q refusal.Refusal) int { return strings.Compare(r.Subject, q.Subject) })
	return list
}

// workOn notes that the agent that calls is at work on files.
func (s *Session) workOn(paths []string) {
	if s.inner == "" {
		return
	}
	who := s.rec.Subagents[s.inner]
	for _, p := range paths {
		if _, known := who.Files[p]; !known {
			if who.Files == nil {
				who.Files = map[string]time.Time{}
			}
			who.Files[p] = s.registry.now()
		}
	}
	s.putSubagent(who)
}

// EndSubagent notes that the agent that calls has ended, or, when it is the one in the window,
// that all those have that it had started. What they claimed stays with the window.
func (s *Session) EndSubagent() {
	if s.inner == "" {
		s.rec.Subagents = nil
		return
	}
	delete(s.rec.Subagents, s.inner)
}
