package mcp

import (
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"lockkeeper/internal/session"
)

// Limits of concurrent sessions over HTTP.
const (
	mostSessions = 1_024
	mostOfOne    = 512 // limit of one token, so that it cannot lock others out
)

// sessionHeader is the header with the session of a request or response.
const sessionHeader = "Mcp-Session-Id"

type activity struct {
	owner string // id of the person
	at    time.Time
}

// heard records activity in a new or known session.
func (s *Server) heard(id, owner string, began bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if began || s.active[id].owner == owner {
		s.active[id] = activity{owner, s.now()}
	}
}

// makeRoom reports whether a client can begin a session. Clients such as Claude Code often
// leave without ending theirs. So if the limit is reached, makeRoom ends the session that has
// been silent longest, if its claims have expired.
func (s *Server) makeRoom(owner string) bool {
	silent, full := s.longestSilent(owner)
	if !full {
		return true
	}
	if silent == nil {
		return false
	}
	if err := silent.Close(); err != nil {
		s.log.Warn("cannot end an abandoned session", "error", err)
		return false
	}
	return true
}

// longestSilent reports whether the limit is reached, and returns the session to end: one of
// the owner's if the owner has too many. It also forgets sessions that have ended.
func (s *Server) longestSilent(owner string) (silent *mcp.ServerSession, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	live := map[string]*mcp.ServerSession{}
	for ss := range s.mcp.Sessions() {
		live[ss.ID()] = ss
	}
	own := 0
	for id, p := range s.active {
		switch {
		case live[id] == nil:
			delete(s.active, id)
		case p.owner == owner:
			own++
		}
	}
	tooMany := own >= mostOfOne
	since := s.now().Add(-s.app.Config.Policies()[session.Policy].TTL)
	for id, p := range s.active {
		if p.at.Before(since) && (p.owner == owner || !tooMany) {
			silent, since = live[id], p.at
		}
	}
	return silent, tooMany || len(live) >= mostSessions
}
