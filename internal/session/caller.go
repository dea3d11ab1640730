package session

import (
	"cmp"
	"context"
	"slices"

	"lockkeeper"
)

// Enclosing lists the sessions of these processes, which are the parents of a process, the
// nearest first. Of several sessions of one process, the last one to call comes first. It
// goes by the records and the grants of sessions, which no environment hides.
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
	for _, r := range known { // also those whose host is about to restart
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

// Known is the SHA-256, in hex, of what the session has seen in a file; empty: it has not
// seen it, or not all of it.
func (s *Session) Known(path string) string {
	if f := s.rec.Files[path]; f.Seen {
		return f.Sum
	}
	return ""
}

// Known is the same of a session that may be at work meanwhile.
func (b *Registry) Known(of Info, path string) (string, error) {
	records, err := b.records()
	for _, r := range records {
		if r.ID == of.ID && r.Agent == of.Agent {
			return (&Session{rec: r}).Known(path), err
		}
	}
	return "", err
}
