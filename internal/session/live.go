package session

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/durable"
	"lockkeeper/internal/session/refusal"
	"lockkeeper/store"
)

// Live lists the sessions that may still be there: those of this user, whether they hold
// something or not, and of others those that hold something. A session whose process is
// gone is left out, even if it still holds something. The oldest come first.
func (b *Registry) Live(ctx context.Context) (list []Info, err error) {
	err = b.app.Store.View(ctx, func(r store.Reader) error {
		grants, err := b.app.Locks.GrantsIn(r)
		if err != nil {
			return err
		}
		list, err = b.LiveAmong(grants)
		return err
	})
	return list, err
}

// LiveAmong is Live for who has listed the grants, and maybe not all of them: sessions of
// others that hold only what is not among them are missing.
func (b *Registry) LiveAmong(grants []*store.Record) ([]Info, error) {
	known, err := b.records()
	if err != nil {
		return nil, err
	}
	byGrant := map[string]bool{}
	var list []Info
	held := map[string]*store.Record{}
	for _, g := range grants {
		if g.Policy == Policy && g.Metadata[keySession] != "" {
			held[g.ID] = g
		}
	}
	for _, r := range known {
		s := r.Info
		if held[s.GrantID] == nil {
			s.GrantID = ""
		}
		if r.Ended || !b.alive(s) {
			continue
		}
		byGrant[s.GrantID] = true
		list = append(list, s)
	}
	for id, g := range held {
		s := Info{ID: g.Metadata[keySession], Agent: g.Metadata[keyAgent], Callsign: g.Holder, TTY: g.Metadata[keyTTY],
			About: g.Metadata[keyReason], Process: g.Process, Began: g.AcquiredAt, Seen: g.HeartbeatAt, GrantID: id}
		if !byGrant[id] && b.alive(s) {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(s, t Info) int { return s.Began.Compare(t.Began) })
	return list, nil
}

// who describes the holder of a conflicting lock.
func (b *Registry) who(ctx context.Context, c lockkeeper.ConflictInfo) (refusal.Holder, error) {
	e, err := b.app.Locks.Request(ctx, c.GrantID)
	if err != nil {
		return refusal.Holder{}, err
	}
	h := refusal.Holder{Callsign: c.Holder, For: b.now().Sub(c.AcquiredAt), Waits: c.Kind == lockkeeper.Waiting}
	if e != nil { // else it left just now
		h.TTY, h.About = e.Metadata[keyTTY], e.Metadata[keyReason]
	}
	h.Idle, h.Wrote = b.idle(c)
	return h, nil
}

// idle is how long ago a file was written, if that was since it is held.
func (b *Registry) idle(c lockkeeper.ConflictInfo) (time.Duration, bool) {
	info, err := os.Lstat(b.at(c.Path))
	if err != nil || info.ModTime().Before(c.AcquiredAt.Add(-durable.FileTick)) {
		return 0, false
	}
	return b.now().Sub(info.ModTime()), true
}

// others lists the locks of others that conflict with these.
func (s *Session) others(ctx context.Context, locks []lockkeeper.Lock) ([]lockkeeper.ConflictInfo, error) {
	found, err := s.registry.app.Locks.CheckConflicts(ctx, locks)
	return slices.DeleteFunc(found, func(c lockkeeper.ConflictInfo) bool { return c.GrantID == s.rec.GrantID || c.GrantID == s.rec.Git }), err
}

// Taken refuses directories below which others hold files, and files that others hold, or
// that other subagents of the session work on. It claims nothing and skips paths outside
// the codebase.
func (s *Session) Taken(ctx context.Context, dirs, files []string) (list []refusal.Refusal, err error) {
	var locks []lockkeeper.Lock
	for _, f := range dirs {
		if l, err := s.registry.app.Resolve(lockkeeper.Read, f); err == nil {
			l.Mode = lockkeeper.Write // who reads there is disturbed as well
			locks = append(locks, l)
		}
	}
	for _, f := range files {
		if path, err := s.registry.Path(f); err == nil {
			locks = append(locks, write(path))
		}
	}
	if len(locks) == 0 {
		return nil, nil
	}
	list = s.busySubagents(func(p string) bool {
		return slices.ContainsFunc(locks, func(l lockkeeper.Lock) bool {
			return l.Path == p || l.Kind == lockkeeper.Dir && lockkeeper.IsAncestor(l.Path, p)
		})
	})
	found, err := s.others(ctx, locks)
	if err != nil {
		return nil, err
	}
	told := map[string]bool{}
	for _, c := range found {
		if told[c.BlockingPath] || isReserved(c.BlockingPath) {
			continue
		}
		told[c.BlockingPath] = true
		c.Path = c.BlockingPath
		who, err := s.registry.who(ctx, c)
		if err != nil {
			return nil, err
		}
		number, err := s.ticket(c.Path)
		if err != nil {
			return nil, err
		}
		list = append(list, refusal.Held(c.Path, who, number, nil))
	}
	return list, nil
}

// Blocker is a holder that keeps a session from writing a path now.
type Blocker struct {
	Path    string         `json:"path"`
	Holder  refusal.Holder `json:"holder"`
	GrantID string         `json:"grant"`
}

// Blockers lists the holders that keep this session from writing some paths. It claims
// nothing and leaves no ticket.
func (s *Session) Blockers(ctx context.Context, paths ...string) (list []Blocker, err error) {
	found, err := s.others(ctx, writes(paths))
	if err != nil {
		return nil, err
	}
	for _, c := range found {
		who, err := s.registry.who(ctx, c)
		if err != nil {
			return nil, err
		}
		list = append(list, Blocker{Path: c.Path, Holder: who, GrantID: c.GrantID})
	}
	return list, nil
}

// isReserved reports whether a path only stands for something, and is no file to work on.
func isReserved(path string) bool {
	return path == lockkeeper.GitTarget || strings.HasPrefix(path, ".lockkeeper/")
}
