package mcp

import (
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"lockkeeper/internal/session"
)

// How many sessions there are over HTTP at once.
const (
	mostSessions = 1_024
	mostOfOne    = 512 // of one token, so that others find a place whatever it does
)

// sessionHeader names the session of a request, and the one that an answer began.
const sessionHeader = "Mcp-Session-Id"

// place is that of a session over HTTP.
type place struct {
	owner string // the id of its person
	spoke time.Time
}

// heard records activity in a new or known session.
func (s *Server) heard(id, owner string, began bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if began || s.places[id].owner == owner {
		s.places[id] = place{owner, s.now()}
	}
}

// makeRoom reports whether somebody can begin a session. Clients such as Claude Code go
// without a word, and leave theirs behind: where there is no place, the one ends that has
// been silent for longest, once what it claimed is free by itself.
func (s *Server) makeRoom(owner string) bool {
	silent, full := s.longestSilent(owner)
	if !full {
		return true
	}
	if silent == nil {
		return false
	}
	if err := silent.Close(); err != nil {
		s.log.Warn("a session that was left behind could not be ended", "error", err)
		return false
	}
	return true
}

// longestSilent tells whether there is no place for somebody, and which session could make
// room: one of their own where they have too many. Sessions that are gone are forgotten.
func (s *Server) longestSilent(owner string) (silent *mcp.ServerSession, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	live := map[string]*mcp.ServerSession{}
	for ss := range s.mcp.Sessions() {
		live[ss.ID()] = ss
	}
	own := 0
	for id, p := range s.places {
		switch {
		case live[id] == nil:
			delete(s.places, id)
		case p.owner == owner:
			own++
		}
	}
	tooMany := own >= mostOfOne
	since := s.now().Add(-s.app.Config.Policies()[session.Policy].TTL)
	for id, p := range s.places {
		if p.spoke.Before(since) && (p.owner == owner || !tooMany) {
			silent, since = live[id], p.spoke
		}
	}
	return silent, tooMany || len(live) >= mostSessions
}
