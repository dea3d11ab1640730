package view

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"lockkeeper"
	"lockkeeper/internal/flow/run"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// Now tells somebody who last saw the event since what they want to know first; 0: they
// see it for the first time.
func (l *Look) Now(ctx context.Context, since uint64) (*Now, error) {
	n := &Now{}
	var stale []lock.RequestInfo
	var lease lockkeeper.Instant
	var orphan *lockkeeper.Item
	s, err := l.scene(ctx, "", func(s *scene, r store.Reader) (err error) {
		if err := s.addBlocked(r); err != nil {
			return err
		}
		if orphan, err = s.orphanIn(r); err != nil {
			return err
		}
		if n.Changes, err = l.changes.since(r, since); err != nil {
			return err
		}
		lease = r.Now().Lease
		stale, err = l.app.Locks.StaleIn(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	p, err := l.papers(ctx, s.flow)
	if err != nil {
		return nil, err
	}
	states, gates := p.states(s.items), p.gates()
	n.Moment, n.Slots, n.Queued, n.Blocked = s.Moment, s.slots, s.census.Queued(), s.census.Waiting
	n.Run, n.Needs, n.Failed = s.line(states, len(gates)), needs(gates), p.failures(s.items)
	n.Enforcement = l.enforcement(ctx)
	n.Problems = problems(p.problem)
	if n.Cost, err = l.cost(s, p, states); err != nil {
		n.Problems = append(n.Problems, "what it cost: "+err.Error())
	}
	silent, err := l.silent(s)
	if err != nil {
		n.Problems = append(n.Problems, "what agents said: "+err.Error())
	}
	landings, err := l.unfinished(ctx)
	if err != nil {
		n.Problems = append(n.Problems, "unfinished landings: "+err.Error())
	}
	n.Stuck = listOf(slices.Concat(l.longBlocked(s, lease), silent, s.lost(), unwanted(orphan), staleGrants(stale), landings))
	slices.SortStableFunc(n.Stuck, func(a, b Stuck) int { return a.Since.Compare(b.Since) })
	return n, nil
}

// longBlocked lists what locks have kept waiting for longer than is usual.
func (l *Look) longBlocked(s *scene, lease lockkeeper.Instant) (list []Stuck) {
	for _, e := range s.blocked {
		waited := blockedFor(&e.Item, lease, l.app.Config.LockTimeout)
		if len(e.Locks) == 0 || waited < l.app.Config.LockTimeout {
			continue
		}
		list = append(list, Stuck{Kind: StuckBlocked, Name: itemName(&e.Item), Item: e.Item.ID, Phase: e.Item.Phase, Since: s.At.Add(-waited), Behind: blockersOf(e), Acts: itemActs(&e.Item)})
	}
	return list
}

// silent lists agents that run and have said nothing for long. Beside an error it lists
// those that are known of.
func (l *Look) silent(s *scene) (list []Stuck, err error) {
	entries, err := l.journal.All(s.flow)
	for _, it := range s.active {
		if it.Stage != lockkeeper.StageRunning || run.FlowOf(it) != s.flow {
			continue
		}
		_, said, unseen := lastSaid(entries, it.ID)
		err = errors.Join(err, unseen)
		if !said.IsZero() && s.At.Sub(said) >= l.app.Config.Agent.StallAfter {
			list = append(list, Stuck{Kind: StuckSilent, Name: itemName(it), Item: it.ID, GrantID: it.GrantID, Phase: it.Phase, Since: said, Behind: []Blocker{}, Acts: itemActs(it)})
		}
	}
	return list, err
}

// lost lists what runs nowhere, since its worker is gone.
func (s *scene) lost() (list []Stuck) {
	for _, it := range s.active {
		if s.workerOf(it) == nil && it.Worker != "" {
			list = append(list, Stuck{Kind: StuckLost, Name: itemName(it), Item: it.ID, GrantID: it.GrantID, Phase: it.Phase, Since: it.DispatchedAt, Behind: []Blocker{}, Acts: itemActs(it)})
		}
	}
	return list
}

// workerOf finds the worker that runs an item; nil: it is gone.
func (s *scene) workerOf(it *lockkeeper.Item) *lockkeeper.Worker {
	at := slices.IndexFunc(s.workers, func(w lockkeeper.Worker) bool { return w.ID == it.Worker })
	if at < 0 {
		return nil
	}
	return &s.workers[at]
}

// unwanted is a job that no worker takes, if there is one.
func unwanted(it *lockkeeper.Item) []Stuck {
	if it == nil {
		return nil
	}
	return []Stuck{{Kind: StuckNobody, Name: itemName(it), Item: it.ID, Phase: it.Phase, Since: it.QueuedAt, Behind: []Blocker{}, Acts: itemActs(it)}}
}

// staleGrants lists grants that a person has to free.
func staleGrants(entries []lock.RequestInfo) (list []Stuck) {
	for _, e := range entries {
		since := e.HeartbeatAt
		if e.ExpiresAt != nil {
			since = *e.ExpiresAt
		}
		list = append(list, Stuck{Kind: StuckStale, Name: names{}.holder(e), Item: e.Metadata[lock.ItemKey], GrantID: e.ID, Since: since, Behind: []Blocker{},
			Acts: []Act{{Name: "force-release", Target: e.ID, Command: "lockkeeper lock force-release " + e.ID}}})
	}
	return list
}

// unfinished lists landings that need attention: a recovery has to end them, or waits
// for a directory that is away.
func (l *Look) unfinished(ctx context.Context) (list []Stuck, err error) {
	open, err := l.app.Unfinished(ctx)
	for _, u := range open {
		seq := strconv.FormatUint(u.Seq, 10)
		list = append(list, Stuck{Kind: StuckLanding, Name: "landing " + seq + " of " + u.Holder, GrantID: u.GrantID, Since: u.At,
			Behind: []Blocker{}, Acts: []Act{{Name: "recover", Target: seq, Command: "lockkeeper gate recover"}}})
	}
	return list, err
}
