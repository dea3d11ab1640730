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

// Live lists the sessions that may still run: all sessions of this user, and those of other users
// that hold locks. It omits a session whose process is gone, even if it still holds locks. The
// oldest come first.
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

// LiveAmong does the same as Live for a caller that has already listed the grants. Sessions of
// other users appear only if one of their grants is in the list.
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

func (b *Registry) Who(ctx context.Context, c lockkeeper.ConflictInfo) (refusal.Holder, error) {
	e, err := b.app.Locks.Request(ctx, c.GrantID)
	if err != nil {
		return refusal.Holder{}, err
	}
	h := refusal.Holder{Callsign: c.Holder, For: b.now().Sub(c.AcquiredAt), Waits: c.Kind == lockkeeper.Waiting}
	if e != nil { // e is nil if the holder left just now
		h.TTY, h.About = e.Metadata[keyTTY], e.Metadata[keyReason]
	}
	h.Idle, h.Wrote = b.idle(c)
	return h, nil
}

// idle returns how long ago a file was last written, if that was after it was acquired.
func (b *Registry) idle(c lockkeeper.ConflictInfo) (time.Duration, bool) {
	info, err := os.Lstat(b.at(c.Path))
	if err != nil || info.ModTime().Before(c.AcquiredAt.Add(-durable.FileTick)) {
		return 0, false
	}
	return b.now().Sub(info.ModTime()), true
}

// others lists the locks of other holders that conflict with these.
func (s *Session) others(ctx context.Context, locks []lockkeeper.Lock) ([]lockkeeper.ConflictInfo, error) {
	found, err := s.registry.app.Locks.CheckConflicts(ctx, locks)
	return slices.DeleteFunc(found, func(c lockkeeper.ConflictInfo) bool { return c.GrantID == s.rec.GrantID || c.GrantID == s.rec.Git }), err
}

// Taken refuses directories that contain files of others, and files that others hold or that
// other subagents of the session work on. It claims nothing and skips paths outside the
// codebase.
func (s *Session) Taken(ctx context.Context, dirs, files []string) (list []refusal.Refusal, err error) {
	var locks []lockkeeper.Lock
	for _, f := range dirs {
		if l, err := s.registry.app.Resolve(lockkeeper.Read, f); err == nil {
			l.Mode = lockkeeper.Write // the command also disturbs readers
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
		who, err := s.registry.Who(ctx, c)
		if err != nil {
			return nil, err
		}
		number, err := s.ticket(c.Path)
		if err != nil {
			return nil, err
		}
		list = append(list, s.taken(c.Path, who, number, nil))
	}
	return list, nil
}

// A Blocker is a holder that prevents a session from writing a path.
type Blocker struct {
	Path    string         `json:"path"`
	Holder  refusal.Holder `json:"holder"`
	GrantID string         `json:"grant"`
}

// Blockers lists the holders that prevent this session from writing some paths. It claims
// nothing and leaves no ticket.
func (s *Session) Blockers(ctx context.Context, paths ...string) (list []Blocker, err error) {
	found, err := s.others(ctx, writes(paths))
	if err != nil {
		return nil, err
	}
	for _, c := range found {
		who, err := s.registry.Who(ctx, c)
		if err != nil {
			return nil, err
		}
		list = append(list, Blocker{Path: c.Path, Holder: who, GrantID: c.GrantID})
	}
	return list, nil
}

// isReserved reports whether a path is a reserved lock target and not a file.
func isReserved(path string) bool {
	return path == lockkeeper.GitTarget || strings.HasSuffix(path, "/"+lockkeeper.GitTarget) || strings.HasPrefix(path, ".lockkeeper/")
}
