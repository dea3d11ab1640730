package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// finding is the judgement, made outside of a transaction, that a record may be
// freed. The freeing transaction checks that the record is still the one that
// was judged.
type finding struct {
	rec        *store.Record
	unclaimed  bool // it may be freed only if the four conditions hold
	kind       lockkeeper.EventKind
	reason     string
	conditions []lockkeeper.Condition
}

// recoverGone frees those of the blockers that are gone: expired ones with a
// process, dead ones where the policy frees the dead, unclaimed stale ones. They
// were found at now.
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

// recoverOne judges a record that was read at seen, and frees it if its policy
// says so.
func (m *Manager) recoverOne(ctx context.Context, rec *store.Record, seen lockkeeper.Instant) (bool, error) {
	f, err := m.judge(ctx, rec, seen)
	if err != nil || f == nil {
		return false, err
	}
	freed, err := m.carryOut(ctx, f, lockkeeper.System())
	var left *leftError
	if errors.As(err, &left) {
		return false, m.noteFailure(ctx, f, left)
	}
	return freed, err
}

// leftError says that something of a grant's holder would not end: what it ran,
// or what it had decided to write.
type leftError struct {
	what string
	err  error
}

func (e *leftError) Error() string { return e.what + ": " + e.err.Error() }
func (e *leftError) Unwrap() error { return e.err }

// judge decides whether a record may be freed without asking anybody; nil when
// it may not. Of a record that was within its lease when it was read, only the
// process is asked: most are, and a look at the store for each would be slow.
func (m *Manager) judge(ctx context.Context, rec *store.Record, seen lockkeeper.Instant) (*finding, error) {
	return m.judgeIn(rec, seen, func(see func(store.Reader) error) error { return m.store.View(ctx, see) })
}

// judgeIn is judge with a way to look at the store.
func (m *Manager) judgeIn(rec *store.Record, seen lockkeeper.Instant, view func(func(store.Reader) error) error) (*finding, error) {
	policy := m.policyOf(rec.Policy)
	life := m.life(rec.Process)
	dead := life == lockkeeper.LifeDead
	f := &finding{rec: rec}
	deadFact := lockkeeper.Condition{Name: "process gone", Held: dead, Fact: processFact(rec.Process, life)}
	switch {
	case rec.State == store.StateRevoking:
		f.kind, f.reason = lockkeeper.EventRecovered, "it was taken away earlier"
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
	var now store.Moment
	err := view(func(r store.Reader) error {
		now = r.Now()
		return nil
	})
	if err != nil {
		return nil, err
	}
	if m.lapsed(rec, now.Lease) {
		f.kind, f.reason = lockkeeper.EventExpired, stateWord(rec.State)+" lease ran out"
		f.conditions = []lockkeeper.Condition{leasePast(rec, now), deadFact}
		return f, nil
	}
	if rec.State.Confirmed() && policy.Stale == lockkeeper.RecoverUnclaimed {
		f.kind, f.reason = lockkeeper.EventRecovered, "stale and unclaimed"
		f.unclaimed = true
		f.conditions = m.fourConditions(f, policy, now)
		if allHeld(f.conditions) {
			return f, nil
		}
	}
	return nil, nil
}

// fourConditions are what must hold before a stale grant may be recovered. The
// fourth, the audit record, holds by being written in the freeing transaction.
func (m *Manager) fourConditions(f *finding, policy lockkeeper.Policy, now store.Moment) []lockkeeper.Condition {
	quiet := now.Lease.Until(f.rec.Heartbeat)
	life := m.life(f.rec.Process)
	return []lockkeeper.Condition{
		leasePast(f.rec, now),
		{Name: "heartbeat older than grace", Held: quiet > policy.Grace, Fact: fmt.Sprintf("%s ago, grace %s", quiet.Round(time.Millisecond), policy.Grace)},
		{Name: "no live holder claims it", Held: life != lockkeeper.LifeAlive, Fact: processFact(f.rec.Process, life)},
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

func (m *Manager) life(p *lockkeeper.Process) lockkeeper.Life {
	if p == nil || m.opt.Processes == nil {
		return lockkeeper.LifeUnknown
	}
	return m.opt.Processes.Life(*p)
}

func processFact(p *lockkeeper.Process, life lockkeeper.Life) string {
	if p == nil {
		return "no process recorded"
	}
	return fmt.Sprintf("pid %d on %s is %s", p.PID, p.Host, life)
}

func allHeld(cs []lockkeeper.Condition) bool {
	return !slices.ContainsFunc(cs, func(c lockkeeper.Condition) bool { return !c.Held })
}

// carryOut frees what was judged, unless it changed since: of a heartbeat and a
// reaper exactly one wins. What a dead holder left running is ended and seen
// gone first; if it will not go, the grant stays. A living holder that is overruled
// loses the grant before its work is ended: it would give it back at once, and the
// record would not say who took it.
func (m *Manager) carryOut(ctx context.Context, f *finding, by lockkeeper.Actor) (freed bool, err error) {
	overruled := f.kind == lockkeeper.EventForceReleased && f.rec.State.Confirmed() && m.life(f.rec.Process) == lockkeeper.LifeAlive
	if !overruled {
		if err := m.endWork(ctx, f); err != nil {
			return false, err
		}
	}
	why := lockkeeper.Event{Kind: f.kind, Actor: by, Reason: f.reason, Conditions: f.conditions}
	revoking := false
	err = m.update(ctx, func(s *step) error {
		cur, err := s.tx.Get(f.rec.ID)
		if err != nil || cur == nil || !unchanged(cur, f.rec) {
			return err
		}
		switch revoking = true; {
		case cur.State == store.StateRevoking:
			return nil
		case cur.State == store.StateLanding || overruled:
			return s.revoke(cur, why)
		}
		freed, revoking = true, false
		return s.free(cur, why)
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

// endWork ends what runs under a grant that is about to be freed, and sees it
// gone: what a dead holder left, and what a living one, whose lease is past or
// who is overruled, would otherwise go on doing beside the next holder.
func (m *Manager) endWork(ctx context.Context, f *finding) error {
	p := f.rec.Process
	if !f.rec.State.Confirmed() || p == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var err error
	switch m.life(p) {
	case lockkeeper.LifeDead:
		err = m.opt.Processes.EndLeftovers(ctx, *p, f.rec.ID)
	case lockkeeper.LifeAlive:
		err = m.opt.Processes.EndWork(ctx, *p, f.rec.ID)
	}
	if err != nil {
		return &leftError{"what the holder left running would not end", err}
	}
	return nil
}

// unchanged reports whether a record is still the one that was judged.
func unchanged(cur, judged *store.Record) bool {
	return cur.Ticket == judged.Ticket && cur.State == judged.State &&
		cur.Heartbeat == judged.Heartbeat && cur.Expires == judged.Expires &&
		sameProcess(cur.Process, judged.Process)
}

// sameProcess compares what is pointed at: a store may hand out a new copy with
// each reading.
func sameProcess(a, b *lockkeeper.Process) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// noteFailure records, once an hour, that something of a holder would not end.
func (m *Manager) noteFailure(ctx context.Context, f *finding, cause error) error {
	return m.update(ctx, func(s *step) error {
		key := "recovery of " + f.rec.ID
		if told, err := s.tx.Denial(key); err != nil || told != 0 {
			return err
		}
		if err := s.tx.SetDenial(key, 1); err != nil {
			return err
		}
		return s.note(&lockkeeper.Event{Kind: lockkeeper.EventRecoverFailed, Actor: lockkeeper.System(), GrantID: f.rec.ID,
			Holder: f.rec.Holder, Locks: f.rec.Locks, Reason: cause.Error(), Conditions: f.conditions})
	})
}

// ForceRelease frees a grant against its holder's will. Only a person or an
// administrator may, with a reason; never an agent. Where the policy asks for
// the four conditions, they must hold even then.
func (m *Manager) ForceRelease(ctx context.Context, id string, by lockkeeper.Actor, reason string) error {
	if err := validID(id); err != nil {
		return err
	}
	if reason == "" {
		return &lockkeeper.InputError{Field: "reason", Reason: "empty", Next: "say why, for the audit trail"}
	}
	if by.Kind != lockkeeper.ActorPerson && by.Kind != lockkeeper.ActorAdmin {
		return m.refuse(ctx, id, by, &lockkeeper.RefusedError{Act: "force-release of " + id, Reason: fmt.Sprintf("only a person or an administrator may, not one of kind %q", by.Kind),
			Next: "ask a person to look at `lockkeeper why " + id + "`"})
	}
	// A heartbeat or a landing may come between the look and the freeing. Where the person's
	// word alone counts it changes nothing, and the grant is looked at again; where the
	// conditions count it may be a sign of life, and the grant stays.
	for range overruleTries {
		f, policy, err := m.overrule(ctx, id)
		switch {
		case err != nil:
			return err
		case f == nil:
			return &lockkeeper.NotHeldError{GrantID: id, Reason: "it is unknown here: released, expired or never granted", Next: "lockkeeper status"}
		case f.unclaimed && !allHeld(f.conditions):
			return m.refuse(ctx, id, by, &lockkeeper.RefusedError{Act: "force-release of " + id,
				Reason: fmt.Sprintf("policy %q frees a grant only when it is stale and unclaimed", policy.Name), Conditions: f.conditions,
				Next: "wait for the lease and its grace to pass, or end the holder"})
		}
		f.kind, f.reason = lockkeeper.EventForceReleased, reason
		if freed, err := m.carryOut(ctx, f, by); freed || err != nil {
			return err
		}
		if f.unclaimed {
			break
		}
	}
	return &lockkeeper.RefusedError{Act: "force-release of " + id, Reason: "the grant changed while it was looked at", Next: "look again: lockkeeper why " + id}
}

// overruleTries is how often a grant that changes while it is looked at is looked at.
// Heartbeats are seconds apart, so the second look is most often the last.
const overruleTries = 10

// overrule looks at what is to be known before a grant is freed against its holder's will;
// nil: there is no such grant.
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
	life := m.life(f.rec.Process)
	f.conditions = []lockkeeper.Condition{leasePast(f.rec, now), {Name: "process gone", Held: life == lockkeeper.LifeDead, Fact: processFact(f.rec.Process, life)}}
	if policy.Stale == lockkeeper.RecoverUnclaimed {
		f.unclaimed = true
		f.conditions = m.fourConditions(f, policy, now)
	}
	return f, policy, nil
}

// Conditions is what ForceRelease checks of a grant, as it is now, and whether it would
// refuse because of that. None: there is no such grant.
func (m *Manager) Conditions(ctx context.Context, id string) (list []lockkeeper.Condition, refused bool, err error) {
	if err := validID(id); err != nil {
		return nil, false, err
	}
	f, _, err := m.overrule(ctx, id)
	if err != nil || f == nil {
		return nil, false, err
	}
	return f.conditions, f.unclaimed && !allHeld(f.conditions), nil
}

// refuse records a refused act and returns it.
func (m *Manager) refuse(ctx context.Context, id string, by lockkeeper.Actor, refusal *lockkeeper.RefusedError) error {
	err := m.update(ctx, func(s *step) error {
		return s.note(&lockkeeper.Event{Kind: lockkeeper.EventRefused, Actor: by, GrantID: id, Reason: refusal.Error(), Conditions: refusal.Conditions})
	})
	if err != nil {
		return err
	}
	return refusal
}
