package session

import (
	"cmp"
	"context"
	"slices"

	"lockkeeper"
)

// Enclosing lists the sessions of the given parent processes of a process, nearest first. If one
// process has several sessions, the last one to call comes first. It uses the records and grants
// of sessions, which a process cannot hide by changing its environment.
func (b *Registry) Enclosing(ctx context.Context, above []lockkeeper.Process) ([]Info, error) {
	if len(above) == 0 {
		return nil, nil
	}
	known, err := b.records()
	if err != nil {
		return nil, err
	}
	live, err := b.Live(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range known { // include sessions whose host is about to restart
		if r.Ended {
			live = append(live, r.Info)
		}
	}
	depth := func(s Info) int {
		return slices.IndexFunc(above, func(p lockkeeper.Process) bool { return sameProcess(s.Process, &p) })
	}
	list := slices.DeleteFunc(live, func(s Info) bool { return depth(s) < 0 })
	slices.SortStableFunc(list, func(s, t Info) int {
		return cmp.Or(cmp.Compare(depth(s), depth(t)), t.Seen.Compare(s.Seen))
	})
	return list, nil
}

// OfProcess returns the session of a host's process, or the zero Info. Another client of the
// same process, such as its MCP server, joins that session, so that the two do not conflict.
func (b *Registry) OfProcess(host *lockkeeper.Process) (Info, error) {
	known, err := b.records()
	if err != nil {
		return Info{}, err
	}
	var last Info
	for _, r := range known {
		if !r.Ended && sameProcess(r.Process, host) && r.Seen.After(last.Seen) {
			last = r.Info
		}
	}
	return last, nil
}

// Known returns the SHA-256, in hex, of the content that the session has seen in a file. It
// returns "" if the session has not seen the whole file.
func (s *Session) Known(path string) string {
	if f := s.rec.Files[path]; f.Seen {
		return f.Sum
	}
	return ""
}

// Known does what Session.Known does, for a session that may be in use by another process.
func (b *Registry) Known(of Info, path string) (string, error) {
	records, err := b.records()
	for _, r := range records {
		if r.ID == of.ID && r.Agent == of.Agent {
			return (&Session{rec: r}).Known(path), err
		}
	}
	return "", err
}
