package session

import (
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
)

// A Mine tells which grants, landings and changes are a caller's own: a session's, or those of a
// person or program outside every session.
type Mine struct {
	registry *Registry
	info     Info                 // the caller's session; zero: the caller is in no session
	above    []lockkeeper.Process // the processes that started the caller, up to the session's host
	under    []string             // the grants under which the caller runs
	holder   string               // the name under which the caller acquires locks
	tokens   bool                 // the caller may use the tokens of this user
}

// Mine returns what belongs to a process. above lists the processes that started it, the nearest
// first, and within the sessions among these. under has the grants of its environment. holder is
// the name under which it acquires locks.
func (b *Registry) Mine(above []lockkeeper.Process, within []Info, under []string, holder string) *Mine {
	m := &Mine{registry: b, above: above, under: under, holder: holder, tokens: true}
	if len(within) == 0 {
		return m
	}
	m.info, m.under, m.holder = within[0], nil, within[0].Callsign
	// The session itself was started by processes with claims that are not its own.
	if at := slices.IndexFunc(above, func(p lockkeeper.Process) bool { return sameProcess(m.info.Process, &p) }); at >= 0 {
		m.above = above[:at+1]
	}
	return m
}

func (s *Session) Mine() *Mine {
	return &Mine{registry: s.registry, info: s.rec.Info, holder: s.rec.Callsign}
}

// And returns m with the grants of one more process, which acts for the caller.
func (m Mine) And(p lockkeeper.Process) *Mine {
	m.above = append([]lockkeeper.Process{p}, m.above...)
	return &m
}

// Holder returns the name under which the caller acquires locks.
func (m *Mine) Holder() string { return m.holder }

// Owns reports whether a live grant is the caller's.
func (m *Mine) Owns(g *lock.RequestInfo) bool {
	if g.Policy == Policy && g.Metadata[keySession] != "" {
		return g.Metadata[keySession] == m.info.ID && g.Metadata[keyAgent] == m.info.Agent
	}
	started := func(p lockkeeper.Process) bool { return sameProcess(g.Process, &p) }
	if slices.Contains(m.under, g.ID) || slices.ContainsFunc(m.above, started) {
		return true
	}
	if !m.tokens {
		return false
	}
	token, err := m.registry.app.Tokens.Get(g.ID) // the token store refuses an agent the tokens of others
	return err == nil && token != ""
}

// Was reports whether the holder of an ended grant, or the writer of a landing, was the caller. A
// new session may have the callsign of an earlier one.
func (m *Mine) Was(holder string, at time.Time) bool {
	return holder == m.holder && (m.info.ID == "" || !at.Before(m.info.Began))
}

// Made returns the paths whose current content the session wrote itself or created by its
// commands, as its record proves. A caller outside every session has no record.
func (m *Mine) Made(paths []string) (map[string]bool, error) {
	if m.info.ID == "" {
		return nil, nil
	}
	known, err := m.registry.records()
	if err != nil {
		return nil, err
	}
	s := &Session{registry: m.registry}
	for file, r := range known {
		if r.ID == m.info.ID && r.Agent == m.info.Agent {
			s.file, s.rec = file, r
		}
	}
	made := map[string]bool{}
	for _, p := range paths {
		now, err := m.registry.stat(p)
		if err != nil {
			return nil, err
		}
		if s.leftByOther(known, p, now) {
			continue
		}
		f, left := s.rec.Files[p]
		switch {
		case left && f.Own && f.Found == nil && !f.touched(now):
			made[p] = true
		case now.Inode == 0: // only the time of the directory is known
		default:
			_, during, err := s.origin(p)
			if err != nil {
				return nil, err
			}
			made[p] = during
		}
	}
	return made, nil
}
