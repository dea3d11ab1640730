package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"lockkeeper"
	"lockkeeper/internal/session/refusal"
	"lockkeeper/lock"
)

// A Write is a file that a call is about to write.
type Write struct {
	Path  string // path from the root, as Registry.Path returns it
	Whole bool   // the call replaces the whole content
}

// Claim acquires files for this session, all of them or none, without waiting. It returns
// refusals for the agent, and then nothing may be written. It renews the lease of files that
// the session holds already.
func (s *Session) Claim(ctx context.Context, list ...Write) ([]refusal.Refusal, error) {
	var unseen []refusal.Refusal
	var paths []string
	for _, w := range list {
		fact, err := s.unread(w)
		if err != nil {
			return nil, err
		}
		if fact != "" {
			unseen = append(unseen, refusal.Unseen(w.Path, fact))
		}
		if !slices.Contains(paths, w.Path) {
			paths = append(paths, w.Path)
		}
	}
	if others := s.busySubagents(func(p string) bool { return slices.Contains(paths, p) }); len(others) > 0 {
		return others, nil
	}
	missing, err := s.touch(ctx, paths)
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		err := s.acquire(ctx, missing)
		if lock.IsBlocked(err) {
			return s.refused(ctx, paths, err)
		}
		if err != nil {
			return nil, err
		}
		if err := s.remember(ctx, missing, false); err != nil {
			return nil, err
		}
	}
	s.workOn(paths)
	if len(unseen) > 0 { // the session holds the files now and can read them undisturbed
		return unseen, nil
	}
	return s.rewriting(ctx, paths)
}

// touch renews the lease of the paths that the session holds, and returns the other paths.
func (s *Session) touch(ctx context.Context, paths []string) (missing []string, err error) {
	held, err := s.held(ctx)
	if err != nil || held == nil {
		return paths, err
	}
	for _, p := range paths {
		if !covers(held, p) {
			missing = append(missing, p)
		}
	}
	// A renewal within one heartbeat of the last one would change nothing. Otherwise renew even
	// if paths are missing, because extending a grant does not renew its lease.
	if s.registry.now().Sub(held.HeartbeatAt) < s.registry.app.Config.Policies()[Policy].Heartbeat {
		return missing, nil
	}
	token, err := s.registry.app.Tokens.Get(s.rec.GrantID)
	if err == nil {
		_, err = s.registry.app.Locks.Renew(ctx, s.rec.GrantID, token)
	}
	if lockkeeper.CodeOf(err) == lockkeeper.CodeNotHeld { // the grant ended just now
		s.rec.GrantID = ""
		return paths, nil
	}
	return missing, err
}

// held returns the session's grant from the store, or nil if it has none.
func (s *Session) held(ctx context.Context) (*lock.RequestInfo, error) {
	if s.rec.GrantID == "" {
		return nil, nil
	}
	e, err := s.registry.app.Locks.Request(ctx, s.rec.GrantID)
	if err == nil && e == nil {
		s.rec.GrantID = ""
	}
	return e, err
}

func covers(held *lock.RequestInfo, path string) bool {
	i, ok := lockkeeper.Find(held.Targets, path)
	return ok && held.Targets[i].Mode == lockkeeper.Write
}

// Holds lists the paths that the session holds for writing.
func (s *Session) Holds(ctx context.Context) (paths []string, err error) {
	held, err := s.held(ctx)
	if err != nil || held == nil {
		return nil, err
	}
	for _, l := range held.Targets {
		if l.Mode == lockkeeper.Write {
			paths = append(paths, l.Path)
		}
	}
	return paths, nil
}

// acquire locks paths that the session does not hold, all of them or none.
func (s *Session) acquire(ctx context.Context, paths []string) error {
	a := s.registry.app
	locks := writes(paths)
	if s.rec.GrantID == "" {
		s.rec.Taking = true // if this call is killed, the next one looks for its grant
		if err := s.save(); err != nil {
			return err
		}
		g, err := a.Acquire(ctx, s.request(locks), 0)
		if err == nil {
			s.rec.GrantID = g.ID
		}
		return err
	}
	if err := a.CheckCopy(ctx, locks); err != nil {
		return err
	}
	token, err := a.Tokens.Get(s.rec.GrantID)
	if err != nil {
		return err
	}
	_, err = a.Locks.Extend(ctx, s.rec.GrantID, token, locks...)
	if !lock.IsBlocked(err) {
		return err
	}
	// Extend does not check whether the blockers are alive; TryAcquire does.
	probe, asked := a.Locks.TryAcquire(ctx, s.request(locks))
	if asked != nil {
		return asked
	}
	if err := probe.Release(ctx); err != nil {
		return err
	}
	_, err = a.Locks.Extend(ctx, s.rec.GrantID, token, locks...)
	return err
}

// adopt finds the grant of a call that was killed before it recorded the grant. It releases
// grants whose token is missing, and all but one.
func (s *Session) adopt(ctx context.Context) error {
	return s.registry.app.Locks.Update(ctx, func(act *lock.Tx) error {
		grants, err := s.registry.app.Locks.GrantsIn(act)
		for _, g := range grants {
			if g.Policy != Policy || g.Metadata[keySession] != s.rec.ID || g.Metadata[keyAgent] != s.rec.Agent || g.ID == s.rec.GrantID {
				continue
			}
			token, err := s.registry.app.Tokens.Get(g.ID)
			if err != nil {
				return err
			}
			if token != "" && s.rec.GrantID == "" {
				s.rec.GrantID = g.ID
				continue
			}
			if _, err := act.Free(g.ID, lockkeeper.Event{Kind: lockkeeper.EventReleased, Reason: "the call that acquired it was killed"}); err != nil {
				return err
			}
		}
		return err
	})
}

// request returns a lock request with the session as holder and its facts as metadata.
func (s *Session) request(locks []lockkeeper.Lock) lockkeeper.Request {
	facts := map[string]string{keySession: s.rec.ID, keyAgent: s.rec.Agent, keyRoot: s.registry.app.Root.Dir()}
	for key, value := range map[string]string{keyTTY: s.rec.TTY, keyReason: s.rec.About} {
		if value != "" {
			facts[key] = value
		}
	}
	return lockkeeper.Request{Holder: s.rec.Callsign, Policy: Policy, Locks: locks, Process: s.rec.Process, Metadata: facts}
}

// taken refuses a path that another holder has. It suggests to defer a patch only if the gate would
// write the file.
func (s *Session) taken(path string, by refusal.Holder, ticket int, free []string) refusal.Refusal {
	return refusal.Held(path, by, ticket, free, s.registry.app.Permits(path) == nil)
}

// refused returns a refusal with a ticket for each path that could not be acquired.
func (s *Session) refused(ctx context.Context, paths []string, err error) ([]refusal.Refusal, error) {
	var blocked *lockkeeper.BlockedError
	errors.As(err, &blocked)
	first := map[string]lockkeeper.ConflictInfo{}
	for _, c := range blocked.Conflicts {
		if _, known := first[c.Path]; !known {
			first[c.Path] = c
		}
	}
	free := slices.DeleteFunc(slices.Clone(paths), func(p string) bool { _, not := first[p]; return not })
	near, err := s.near(ctx, first)
	if err != nil {
		return nil, err
	}
	var list []refusal.Refusal
	for _, p := range paths {
		c, in := first[p]
		if !in {
			continue
		}
		who, err := s.registry.Who(ctx, c)
		if err != nil {
			return nil, err
		}
		number, err := s.ticket(p)
		if err != nil {
			return nil, err
		}
		list = append(list, s.taken(p, who, number, slices.Concat(free, near[p])))
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("blocked, but no conflict is known: %w", blocked)
	}
	return list, nil
}

// Release releases everything that the session holds, at the end of a turn.
func (s *Session) Release(ctx context.Context) error {
	now, err := fileClock()
	if err != nil {
		return err
	}
	s.late(now)
	return s.releaseAll(ctx)
}

func (s *Session) releaseAll(ctx context.Context) error {
	s.rec.Subagents, s.rec.Outside = nil, nil
	err := s.EndRewrite(ctx)
	if s.rec.GrantID == "" {
		return err
	}
	err = errors.Join(err, s.registry.unprotect(ctx, s.rec.GrantID)) // modes are restored before another session can acquire the files
	if _, releasing := s.registry.app.Release(ctx, s.rec.GrantID); releasing != nil {
		return errors.Join(err, releasing)
	}
	s.rec.GrantID = ""
	return err
}

// Leave ends the session. If its host only restarts the session, the next session of the
// same process takes over its locks.
func (s *Session) Leave(ctx context.Context, restarts bool) error {
	if restarts {
		s.rec.Ended = true
		return s.Close()
	}
	err := s.Release(ctx)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	return errors.Join(s.registry.sweepCopies(), forget(s.file), s.lock.Close())
}
