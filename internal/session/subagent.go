package session

import (
	"maps"
	"slices"
	"strings"
	"time"

	"lockkeeper/internal/session/refusal"
)

// A Subagent is an agent that the main agent of a session started. A host runs several at the
// same time in one session. They share the locks of the main agent, but not each other's files.
type Subagent struct {
	ID   string `json:"-"` // given by the host; empty: the main agent
	Kind string `json:"kind,omitempty"`

	Background bool `json:"behind,omitempty"` // the subagent continues after the turn that started it

	Seen  time.Time            `json:"seen"`
	Files map[string]time.Time `json:"files"` // files that the subagent works on, and since when
}

// enterAs records which agent of the session calls.
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

// busySubagents refuses the matching paths that another agent of the session works on. An agent
// without a call for the length of a lease counts as gone, because its end was not reported.
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

// workOn records that the calling agent works on files.
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

// Continue records the subagents that continue after the turn of the main agent. It reports whether
// one of them works on files.
func (s *Session) Continue(ids []string) (working bool) {
	for _, id := range ids {
		if who, known := s.rec.Subagents[id]; known {
			who.Background = true
			s.rec.Subagents[id] = who
			working = working || len(who.Files) > 0
		}
	}
	return working
}

// concerned lists the other agents of the session that a changed file concerns, by the host's ids.
// Such an agent works on the file, or its command ran when the file changed. A file that no subagent
// works on is the main agent's.
func (s *Session) concerned(path string, is Print) (list []string) {
	add := func(id string) {
		if id != s.inner && !slices.Contains(list, id) {
			list = append(list, id)
		}
	}
	owner := ""
	for id, who := range s.rec.Subagents {
		if _, works := who.Files[path]; works {
			owner = id
			add(id)
		}
	}
	if owner == "" {
		add("")
	}
	for _, span := range s.rec.Ran {
		if span.From <= is.Ctime && is.Ctime <= span.To {
			add(span.Agent)
		}
	}
	slices.Sort(list)
	return list
}

// EndSubagent records that the calling agent ended. If it is the main agent, all subagents have
// ended that do not work in the background. Their locks stay with the session.
func (s *Session) EndSubagent() {
	if s.inner == "" {
		maps.DeleteFunc(s.rec.Subagents, func(_ string, who Subagent) bool { return !who.Background })
	} else {
		delete(s.rec.Subagents, s.inner)
	}
	for id, texts := range s.rec.Notices { // the main agent continues the work of subagents that ended
		if _, works := s.rec.Subagents[id]; !works && id != "" {
			for _, text := range texts {
				s.Notify("", text)
			}
			delete(s.rec.Notices, id)
		}
	}
}
