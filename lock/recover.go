package lock

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// A finding says that a record may be freed. It is made outside of a transaction, so the
// transaction that frees the record checks that the record has not changed since.
type finding struct {
	rec            *store.Record
	fourConditions bool // the record may be freed only if the four conditions hold
	kind           lockkeeper.EventKind
	reason         string
	conditions     []lockkeeper.Condition
}

// recoverGone frees the blockers, read at now, that are gone: expired grants with a process,
// grants of dead holders if the policy frees them, and stale grants that meet the four
// conditions.
func (m *Manager) recoverGone(ctx context.Context, found []store.Overlap, now lockkeeper.Instant) (freed bool, err error) {
	last := uint64(0)
	for _, o := range found {
		if o.Record.Ticket == last {
			continue
		}
		last = o.Record.Ticket
		ok, err := m.recoverOne(ctx, o.Record, now)
		if err != nil {
			return freed, err
		}
		freed = freed || ok
	}
	return freed, nil
}

// recoverOne frees a record, read at the time seen, if its policy allows it.
func (m *Manager) recoverOne(ctx context.Context, rec *store.Record, seen lockkeeper.Instant) (bool, error) {
	f, err := m.judge(ctx, rec, seen)
	if err != nil || f == nil {
		return false, err
	}
	freed, err := m.carryOut(ctx, f, lockkeeper.System())
	if left, ok := errors.AsType[*leftError](err); ok {
		return false, m.noteFailure(ctx, f, left)
	}
	return freed, err
}

// A leftError says that a process of a holder could not be stopped, or a landing not completed.
type leftError struct {
	what string
	err  error
}

func (e *leftError) Error() string { return e.what + ": " + e.err.Error() }
func (e *leftError) Unwrap() error { return e.err }

// judge decides whether a record, read at the time seen, may be freed without asking a person;
// nil if not. Most records were within their lease at that time. For those, judge checks only
// the process and does not read the store's clock.
func (m *Manager) judge(ctx context.Context, rec *store.Record, seen lockkeeper.Instant) (*finding, error) {
	return m.judgeAt(rec, seen, func() (store.Moment, error) {
		return store.Read(ctx, m.store, func(r store.Reader) (store.Moment, error) { return r.Now(), nil })
	})
}

func (m *Manager) judgeAt(rec *store.Record, seen lockkeeper.Instant, clock func() (store.Moment, error)) (*finding, error) {
	policy := m.policyOf(rec.Policy)
	deadFact := m.processGone(rec.Process)
	dead := deadFact.Held
	f := &finding{rec: rec}
	switch {
	case rec.State == store.StateRevoking:
		f.kind, f.reason = lockkeeper.EventRecovered, "it was revoked earlier"
		return f, nil
	case !rec.State.Confirmed() && dead:
		f.kind, f.reason = lockkeeper.EventRecovered, "the waiting process is gone"
		f.conditions = []lockkeeper.Condition{deadFact}
		return f, nil
	case dead && policy.Dead == lockkeeper.DeadFrees:
		f.kind, f.reason = lockkeeper.EventRecovered, "the holder's process is gone"
		f.conditions = []lockkeeper.Condition{deadFact}
		return f, nil
	case rec.Expires == 0 || rec.Expires > seen:
		return nil, nil
	}
	now, err := clock()
	if err != nil {
		return nil, err
	}
	if m.lapsed(rec, now.Lease) {
		f.kind, f.reason = lockkeeper.EventExpired, stateWord(rec.State)+" lease expired"
		f.conditions = []lockkeeper.Condition{leasePast(rec, now), deadFact}
		return f, nil
	}
	if rec.State.Confirmed() && policy.Stale == lockkeeper.RecoverUnclaimed {
		f.kind, f.reason = lockkeeper.EventRecovered, "stale and unclaimed"
		f.fourConditions = true
		f.conditions = m.checkFour(f, policy, now)
		if allHeld(f.conditions) {
			return f, nil
		}
	}
	return nil, nil
}

// checkFour checks the four conditions for recovering a stale grant. The fourth, the audit
// record, always holds: the transaction that frees the grant writes it.
func (m *Manager) checkFour(f *finding, policy lockkeeper.Policy, now store.Moment) []lockkeeper.Condition {
	quiet := now.Lease.Until(f.rec.Heartbeat)
	liveness := m.liveness(f.rec.Process)
	return []lockkeeper.Condition{
		leasePast(f.rec, now),
		{Name: "heartbeat older than grace", Held: quiet > policy.Grace, Fact: fmt.Sprintf("%s ago, grace %s", quiet.Round(time.Millisecond), policy.Grace)},
		{Name: "no live holder claims it", Held: liveness != lockkeeper.ProcessAlive, Fact: processFact(f.rec.Process, liveness)},
		{Name: "recorded in the audit trail", Held: true},
	}
}

func leasePast(rec *store.Record, now store.Moment) lockkeeper.Condition {
	if rec.Expires == 0 {
		return lockkeeper.Condition{Name: "lease past", Fact: "it never expires"}
	}
	over := now.Lease.Until(rec.Expires)
	return lockkeeper.Condition{Name: "lease past", Held: over >= 0, Fact: "by " + over.Round(time.Millisecond).String()}
}

func (m *Manager) liveness(p *lockkeeper.Process) lockkeeper.Liveness {
	if p == nil || m.opt.Processes == nil {
		return lockkeeper.ProcessUnknown
	}
	return m.opt.Processes.Liveness(*p)
}

func processFact(p *lockkeeper.Process, l lockkeeper.Liveness) string {
	if p == nil {
		return "no process recorded"
	}
	return fmt.Sprintf("pid %d on %s is %s", p.PID, p.Host, l)
}

func (m *Manager) processGone(p *lockkeeper.Process) lockkeeper.Condition {
	l := m.liveness(p)
	return lockkeeper.Condition{Name: "process gone", Held: l == lockkeeper.ProcessDead, Fact: processFact(p, l)}
}

func allHeld(cs []lockkeeper.Condition) bool {
	return !slices.ContainsFunc(cs, func(c lockkeeper.Condition) bool { return !c.Held })
}

// carryOut frees a record unless it changed since it was judged, for example by a heartbeat.
// It first ends the processes that a dead holder left, and keeps the grant if they do not end.
// A live holder loses the grant before its processes are ended. Otherwise it would release the
// grant itself, and the log would not say who revoked it.
func (m *Manager) carryOut(ctx context.Context, f *finding, by lockkeeper.Actor) (freed bool, err error) {
	overruled := f.kind == lockkeeper.EventForceReleased && f.rec.State.Confirmed() && m.liveness(f.rec.Process) == lockkeeper.ProcessAlive
	if !overruled {
		if err := m.endWork(ctx, f); err != nil {
			return false, err
		}
	}
	why := lockkeeper.Event{Kind: f.kind, Actor: by, Reason: f.reason, Conditions: f.conditions}
	revoking := false
	err = m.Update(ctx, func(tx *Tx) error {
		cur, err := tx.Get(f.rec.ID)
		if err != nil || cur == nil || !unchanged(cur, f.rec) {
			return err
		}
		switch revoking = true; {
		case cur.State == store.StateRevoking:
			return nil
		case cur.State == store.StateLanding || overruled:
			return tx.revoke(cur, why)
		}
		freed, revoking = true, false
		return tx.free(cur, why)
	})
	if err != nil || !revoking {
		return freed && err == nil, err
	}
	if overruled {
		if err := m.endWork(ctx, f); err != nil {
			return false, err
		}
	}
	return m.finishRevoking(ctx, f.rec.ID, why)
}

// endWork ends the processes under a grant that is about to be freed and waits until they are
// gone. Otherwise they would run at the same time as the next holder.
func (m *Manager) endWork(ctx context.Context, f *finding) error {
	p := f.rec.Process
	if !f.rec.State.Confirmed() || p == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var err error
	switch m.liveness(p) {
	case lockkeeper.ProcessDead:
		err = m.opt.Processes.EndLeftovers(ctx, *p, f.rec.ID)
	case lockkeeper.ProcessAlive:
		err = m.opt.Processes.EndWork(ctx, *p, f.rec.ID)
	}
	if err != nil {
		return &leftError{"processes that the holder left did not end", err}
	}
	return nil
}

func unchanged(cur, judged *store.Record) bool {
	return cur.Ticket == judged.Ticket && cur.State == judged.State &&
		cur.Heartbeat == judged.Heartbeat && cur.Expires == judged.Expires &&
		reflect.DeepEqual(cur.Process, judged.Process) // a store may return a new copy with each read
}

// noteFailure records, once an hour, that processes or landings of a holder did not end.
func (m *Manager) noteFailure(ctx context.Context, f *finding, cause error) error {
	_, err := m.Note(ctx, "recovery of "+f.rec.ID, lockkeeper.Event{Kind: lockkeeper.EventRecoverFailed, Actor: lockkeeper.System(), GrantID: f.rec.ID,
		Holder: f.rec.Holder, Locks: f.rec.Locks, Reason: cause.Error(), Conditions: f.conditions})
	return err
}

// ForceRelease frees a grant against its holder's will. Only a person or an administrator
// may do so, with a reason. If the policy requires the four conditions, they must hold.
func (m *Manager) ForceRelease(ctx context.Context, id string, by lockkeeper.Actor, reason string) error {
	if err := validID(id); err != nil {
		return err
	}
	if reason == "" {
		return &lockkeeper.InputError{Field: "reason", Reason: "required", Next: "say why, for the audit trail"}
	}
	if by.Kind != lockkeeper.ActorPerson && by.Kind != lockkeeper.ActorAdmin {
		return m.refuse(ctx, id, by, &lockkeeper.RefusedError{Act: "force-release of " + id, Reason: fmt.Sprintf("only a person or an administrator may do it, not an actor of kind %q", by.Kind),
			Next: "ask a person to look at `lockkeeper why " + id + "`"})
	}
	// A heartbeat or a landing may change the grant between reading and freeing it. If the
	// policy requires no conditions, the grant is read and freed again. If it does, the change
	// may be a sign of life, and the grant stays.
	for range overruleTries {
		f, policy, err := m.overrule(ctx, id)
		switch {
		case err != nil:
			return err
		case f == nil:
			return &lockkeeper.NotHeldError{GrantID: id, Reason: "it is unknown here: released, expired or never granted", Next: "lockkeeper status"}
		case f.fourConditions && !allHeld(f.conditions):
			return m.refuse(ctx, id, by, &lockkeeper.RefusedError{Act: "force-release of " + id,
				Reason: fmt.Sprintf("policy %q frees a grant only when it is stale and unclaimed", policy.Name), Conditions: f.conditions,
				Next: "wait for the lease and its grace to pass, or end the holder"})
		}
		f.kind, f.reason = lockkeeper.EventForceReleased, reason
		if freed, err := m.carryOut(ctx, f, by); freed || err != nil {
			return err
		}
		if f.fourConditions {
			break
		}
	}
	return &lockkeeper.RefusedError{Act: "force-release of " + id, Reason: "the grant changed while it was checked", Next: "lockkeeper why " + id}
}

// overruleTries bounds how often ForceRelease reads a grant that keeps changing. Heartbeats
// are seconds apart, so the second read is usually the last.
const overruleTries = 10

// overrule judges a grant for ForceRelease; nil: there is no such grant.
func (m *Manager) overrule(ctx context.Context, id string) (*finding, lockkeeper.Policy, error) {
	f := &finding{}
	var now store.Moment
	err := m.store.View(ctx, func(r store.Reader) (err error) {
		now = r.Now()
		f.rec, err = r.Get(id)
		return err
	})
	if err != nil || f.rec == nil {
		return nil, lockkeeper.Policy{}, err
	}
	policy := m.policyOf(f.rec.Policy)
	f.conditions = []lockkeeper.Condition{leasePast(f.rec, now), m.processGone(f.rec.Process)}
	if policy.Stale == lockkeeper.RecoverUnclaimed {
		f.fourConditions = true
		f.conditions = m.checkFour(f, policy, now)
	}
	return f, policy, nil
}

// Conditions returns the conditions that ForceRelease would check now, and whether it would
// refuse. The list is empty if there is no such grant.
func (m *Manager) Conditions(ctx context.Context, id string) (list []lockkeeper.Condition, refused bool, err error) {
	if err := validID(id); err != nil {
		return nil, false, err
	}
	f, _, err := m.overrule(ctx, id)
	if err != nil || f == nil {
		return nil, false, err
	}
	return f.conditions, f.fourConditions && !allHeld(f.conditions), nil
}

// refuse records a refusal and returns it.
func (m *Manager) refuse(ctx context.Context, id string, by lockkeeper.Actor, refusal *lockkeeper.RefusedError) error {
	err := m.Update(ctx, func(tx *Tx) error {
		return tx.note(lockkeeper.Event{Kind: lockkeeper.EventRefused, Actor: by, GrantID: id, Reason: refusal.Error(), Conditions: refusal.Conditions})
	})
	if err != nil {
		return err
	}
	return refusal
}

// Recover checks all records once, frees those whose policy allows it without asking a
// person, and returns how many it freed. It also prunes the event log. Correctness does not
// depend on Recover: a request that such a record blocks frees it too.
func (m *Manager) Recover(ctx context.Context) (freed int, err error) {
	for after := uint64(0); ; {
		var recs []*store.Record
		var now lockkeeper.Instant
		err := m.store.View(ctx, func(r store.Reader) (err error) {
			now = r.Now().Lease
			recs, err = r.List(after, pageSize)
			return err
		})
		if err != nil {
			return freed, err
		}
		for _, rec := range recs {
			after = rec.Ticket
			ok, err := m.recoverOne(ctx, rec, now)
			if err != nil {
				return freed, err
			}
			if ok {
				freed++
			}
		}
		if len(recs) < pageSize {
			break
		}
	}
	return freed, m.store.Update(ctx, m.prune)
}

// prune drops the events that Options do not keep.
func (m *Manager) prune(tx store.Tx) error {
	return tx.Prune(tx.Now().Wall.Add(-m.opt.KeepFor), m.opt.KeepEvents)
}

// StartReaper runs Recover every interval until the manager closes. It passes errors to
// failed and tries again after the next interval.
func (m *Manager) StartReaper(interval time.Duration, failed func(error)) {
	m.owned.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-m.ctx.Done():
				return
			case <-tick.C:
			}
			if _, err := m.Recover(m.ctx); err != nil && !errors.Is(err, context.Canceled) {
				failed(err)
			}
		}
	})
}
