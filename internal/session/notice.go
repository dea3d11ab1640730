package session

import (
	"errors"
	"slices"
)

// A notice is a text for the agent of a session. It stays in the record until the agent was shown it:
// hosts show the answers to some events only, and a hook process may end before its answer is read.
// Each agent of a session has its own, by the id of the subagent.

// mostNotices limits the notices of one agent. The oldest are dropped.
const mostNotices = 50

// Notices returns what the calling agent was not shown yet.
func (s *Session) Notices() []string { return s.rec.Notices[s.inner] }

// Notify adds a notice for an agent of the session. The id is that of the subagent; empty: the main
// agent.
func (s *Session) Notify(id, text string) {
	if s.rec.Notices == nil {
		s.rec.Notices = map[string][]string{}
	}
	list := s.rec.Notices[id]
	if slices.Contains(list, text) {
		return
	}
	list = append(list, text)
	s.rec.Notices[id] = list[max(0, len(list)-mostNotices):]
}

// Shown removes notices that an agent of a session was shown, after the session's call.
func (b *Registry) Shown(v Caller, texts []string) (err error) {
	s, err := b.reopen(v)
	if err != nil || s == nil {
		return err
	}
	defer func() { err = errors.Join(err, s.lock.Close()) }()
	left := slices.DeleteFunc(s.rec.Notices[v.Subagent.ID], func(text string) bool { return slices.Contains(texts, text) })
	if s.rec.Notices[v.Subagent.ID] = left; len(left) == 0 {
		delete(s.rec.Notices, v.Subagent.ID)
	}
	return s.save()
}

// reopen locks the record of a session outside of its calls. It returns nil if there is none.
func (b *Registry) reopen(v Caller) (*Session, error) {
	s := &Session{registry: b, file: b.recordFile(v)}
	var err error
	if s.lock, err = lockFile(lockOf(s.file)); err != nil {
		return nil, err
	}
	if s.rec, err = readRecord(s.file); err != nil || s.rec.ID == "" {
		return nil, errors.Join(err, s.lock.Close())
	}
	return s, nil
}
