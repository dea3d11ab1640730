package gate

import (
	"context"
	"strconv"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// This file holds every transaction that changes the table of landings. A landing is
// decided once, may be taken over by recoveries, and is ended once by its last taker.

// decide stores a landing as decided, which is the commit point: from here on it is
// completed, or rolled back as a whole. permit sees the grant inside the transaction
// and may refuse; without a grant it sees nil. Earlier landings of the same grant that
// this process has completed are marked as committed in the same transaction.
func (g *Gate) decide(ctx context.Context, grant *lockkeeper.Grant, l *lockkeeper.Landing, permit func(store.Reader, *store.Record) error) error {
	done := g.takeDone(grant.ID)
	err := g.locks.Update(ctx, func(a *lock.Tx) error {
		if err := commitAll(a, done); err != nil {
			return err
		}
		var rec *store.Record
		if grant.ID != "" {
			var err error
			if rec, err = a.Writable(grant.ID, grant.Token); err != nil {
				return err
			}
			l.GrantID, l.Holder, l.Fence = rec.ID, rec.Holder, rec.Fence
		}
		if err := permit(a, rec); err != nil {
			return err
		}
		ev := eventOf(lockkeeper.EventLanded, l)
		ev.Actor = lockkeeper.Actor{Name: l.Holder, Kind: lockkeeper.ActorHolder}
		if l.Draft != "" {
			ev.Data["draft"] = l.Draft
			ev.Reason = "steps 2 to 5: written to " + l.Draft + ", each file and the directory synced, on the device of its target"
		}
		seq, err := a.Append(ev)
		if err != nil {
			return err
		}
		l.Seq, l.State, l.At, l.Taker = seq, lockkeeper.Decided, a.Now().Wall, l.Commit
		if err := a.InsertLanding(l); err != nil || rec == nil {
			return err
		}
		return a.LandingOpened(rec)
	})
	if err != nil {
		g.putDone(grant.ID, done...)
	}
	return err
}

// markCommitted marks landings of one grant as committed, whose changes are all in the
// tree and on disk. It leaves a landing alone that another process has taken over.
func (g *Gate) markCommitted(ctx context.Context, grantID string, done ...store.TakenLanding) error {
	return g.locks.Update(ctx, func(a *lock.Tx) error {
		if err := commitAll(a, done); err != nil {
			return err
		}
		return a.LandingEnded(grantID)
	})
}

func commitAll(tx store.LandingTx, done []store.TakenLanding) error {
	for _, e := range done {
		if err := tx.EndLanding(e, lockkeeper.Committed); err != nil {
			return err
		}
	}
	return nil
}

// takeLanding takes a decided landing over and returns it; nil if it has ended. From
// then on no earlier taker can end it.
func (g *Gate) takeLanding(ctx context.Context, by store.TakenLanding) (taken *lockkeeper.Landing, err error) {
	err = g.locks.Update(ctx, func(a *lock.Tx) error {
		taken = nil
		found, err := a.Landings(store.LandingQuery{Seq: by.Seq, Open: true})
		if err != nil || len(found) == 0 {
			return err
		}
		taken = found[0]
		taken.Taker = by.Taker
		return a.TakeLanding(by)
	})
	return taken, err
}

// endLanding ends a landing that the taker in by has taken over, and records the reason unless it
// is empty. It returns false if another process has taken the landing since.
func (g *Gate) endLanding(ctx context.Context, by store.TakenLanding, state lockkeeper.LandingState, reason string) (ended bool, err error) {
	kind := lockkeeper.EventFinished
	if state == lockkeeper.Undone {
		kind = lockkeeper.EventUndone
	}
	return g.endNoted(ctx, by, state, lockkeeper.Event{Kind: kind, Actor: lockkeeper.System(), Reason: reason})
}

// endReplaced ends the landing of a directory whose change is made, with an event of its holder.
func (g *Gate) endReplaced(ctx context.Context, l *lockkeeper.Landing, by store.TakenLanding) error {
	what := "steps 6 to 9: exchanged with " + l.Draft
	if l.Draft == "" {
		what = "steps 6 to 9: removed"
	}
	ended, err := g.endNoted(ctx, by, lockkeeper.Committed, lockkeeper.Event{Kind: lockkeeper.EventReplaced,
		Actor: lockkeeper.Actor{Name: l.Holder, Kind: lockkeeper.ActorHolder}, Reason: what + ", its parent synced, the manifest committed"})
	if ended {
		l.State = lockkeeper.Committed
	}
	return err // a landing that was taken over is complete; the other process ends it
}

// endNoted ends a landing. It also appends the event if the event has a reason.
func (g *Gate) endNoted(ctx context.Context, by store.TakenLanding, state lockkeeper.LandingState, as lockkeeper.Event) (ended bool, err error) {
	err = g.locks.Update(ctx, func(a *lock.Tx) error {
		found, err := a.Landings(store.LandingQuery{Seq: by.Seq, Open: true})
		if err != nil || len(found) == 0 || found[0].Taker != by.Taker {
			return err
		}
		l := found[0]
		if as.Reason != "" {
			ev := eventOf(as.Kind, l)
			ev.Actor, ev.Reason = as.Actor, as.Reason
			if _, err := a.Append(ev); err != nil {
				return err
			}
		}
		ended = true
		if err := a.EndLanding(by, state); err != nil {
			return err
		}
		return a.LandingEnded(l.GrantID)
	})
	return ended && err == nil, err
}

// eventOf returns an event about a landing: its grant, its paths and its number.
func eventOf(kind lockkeeper.EventKind, l *lockkeeper.Landing) lockkeeper.Event {
	ev := lockkeeper.Event{Kind: kind, GrantID: l.GrantID, Holder: l.Holder, Data: map[string]string{"commit": l.Commit}}
	for _, c := range l.Changes {
		kind := lockkeeper.File
		if Replaced(l) != "" {
			kind = lockkeeper.Dir
		}
		ev.Locks = append(ev.Locks, lockkeeper.Lock{Target: lockkeeper.Target{Path: c.Path, Kind: kind}, Mode: lockkeeper.Write})
	}
	if l.Seq != 0 {
		ev.Data["landing"] = strconv.FormatUint(l.Seq, 10)
	}
	if l.Undoes != 0 {
		ev.Data["undoes"] = strconv.FormatUint(l.Undoes, 10)
	}
	return ev
}
