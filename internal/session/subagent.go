package session

import (
	"slices"
	"strings"
	"time"

	"lockkeeper/internal/session/refusal"
)

// A Subagent is an agent that the main agent of a session started. A host runs several at
// once in one session. They share the claims of the main agent, and are kept apart from each
// other.
type Subagent struct {
	ID   string `json:"-"` // empty: the main agent
	Kind string `json:"kind,omitempty"`

	Seen  time.Time            `json:"seen"`
	Files map[string]time.Time `json:"files"` // that it works on, since when
}

// enterAs notes which agent of the session calls.
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

// busySubagents refuses the paths that are meant and that another agent of the session works
// on. An agent that made no call for the length of a lease is gone: its end was not reported.
func (s *Session) busySubagents(meant func(path string) bool) (list []refusal.Refusal) {
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

// workOn notes that the calling agent works on files.
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

// EndSubagent notes that the calling agent ended. If that is the main agent, all subagents
// ended. Their claims stay with the session.
func (s *Session) EndSubagent() {
	if s.inner == "" {
		s.rec.Subagents = nil
		return
	}
	delete(s.rec.Subagents, s.inner)
}
