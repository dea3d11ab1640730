package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"lockkeeper"
)

// finding is the judgement, made outside of a transaction, that a record may be
// freed. The freeing transaction checks that the record is still the one that
// was judged.
type finding struct {
	rec        *lockkeeper.Record
	claims     []lockkeeper.Claim
	unclaimed  bool // it is judged by the holder's claims, which must not have changed either
	kind       lockkeeper.EventKind
	reason     string
	conditions []lockkeeper.Condition
}

// recoverGone frees those of the blockers that are gone: expired ones with a
// process, dead ones where the policy frees the dead, unclaimed stale ones. They
// were found at now.
func (m *Manager) recoverGone(ctx context.Context, found []lockkeeper.Overlap, now lockkeeper.Instant) (freed bool, err error) {
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
func (m *Manager) recoverOne(ctx context.Context, rec *lockkeeper.Record, seen lockkeeper.Instant) (bool, error) {
	f, err := m.judge(ctx, rec, seen)
	if err != nil || f == nil {
		return false, err
	}
	freed, err := m.carryOut(ctx, f, system)
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
func (m *Manager) judge(ctx context.Context, rec *lockkeeper.Record, seen lockkeeper.Instant) (*finding, error) {
	return m.judgeIn(rec, seen, func(see func(lockkeeper.Reader) error) error { return m.store.View(ctx, see) })
}

// judgeIn is judge with a way to look at the store.
func (m *Manager) judgeIn(rec *lockkeeper.Record, seen lockkeeper.Instant, view func(func(lockkeeper.Reader) error) error) (*finding, error) {
	policy := m.policyOf(rec.Policy)
	life := m.life(rec.Process)
	dead := life == lockkeeper.LifeDead
	f := &finding{rec: rec}
	deadFact := lockkeeper.Condition{Name: "process gone", Held: dead, Fact: processFact(rec.Process, life)}
	switch {
	case rec.State == lockkeeper.StateRevoking:
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
	var now lockkeeper.Moment
	err := view(func(r lockkeeper.Reader) (err error) {
		now = r.Now()
		f.claims, err = r.Claims(rec.Holder)
		return err
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
func (m *Manager) fourConditions(f *finding, policy lockkeeper.Policy, now lockkeeper.Moment) []lockkeeper.Condition {
	quiet := now.Lease.Until(f.rec.Heartbeat)
	claimed, fact := m.claimed(f, now)
	return []lockkeeper.Condition{
		leasePast(f.rec, now),
		{Name: "heartbeat older than grace", Held: quiet > policy.Grace, Fact: fmt.Sprintf("%s ago, grace %s", quiet.Round(time.Millisecond), policy.Grace)},
		{Name: "no live holder claims it", Held: !claimed, Fact: fact},
		{Name: "recorded in the audit trail", Held: true},
	}
}

func leasePast(rec *lockkeeper.Record, now lockkeeper.Moment) lockkeeper.Condition {
	if rec.Expires == 0 {
		return lockkeeper.Condition{Name: "lease past", Fact: "it never expires"}
	}
	over := now.Lease.Until(rec.Expires)
	return lockkeeper.Condition{Name: "lease past", Held: over >= 0, Fact: "by " + over.Round(time.Millisecond).String()}
}

// claimed reports whether something alive stands behind a grant: its own
// process, or a claim of its holder.
func (m *Manager) claimed(f *finding, now lockkeeper.Moment) (bool, string) {
	if life := m.life(f.rec.Process); life == lockkeeper.LifeAlive {
		return true, processFact(f.rec.Process, life)
	}
	for _, c := range f.claims {
		switch life := m.life(c.Process); {
		case life == lockkeeper.LifeAlive:
			return true, "claim " + c.ID + ", " + processFact(c.Process, life)
		case life == lockkeeper.LifeUnknown && c.Expires > now.Lease:
			return true, fmt.Sprintf("claim %s, alive for another %s", c.ID, c.Expires.Until(now.Lease).Round(time.Second))
		}
	}
	return false, fmt.Sprintf("%d claims, none alive", len(f.claims))
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
		if f.unclaimed {
			claims, err := s.tx.Claims(cur.Holder)
			if err != nil || !slices.EqualFunc(claims, f.claims, sameClaim) {
				return err
			}
		}
		switch revoking = true; {
		case cur.State == lockkeeper.StateRevoking:
			return nil
		case cur.State == lockkeeper.StateLanding || overruled:
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
func unchanged(cur, judged *lockkeeper.Record) bool {
	return cur.Ticket == judged.Ticket && cur.State == judged.State &&
		cur.Heartbeat == judged.Heartbeat && cur.Expires == judged.Expires &&
		sameProcess(cur.Process, judged.Process)
}

func sameClaim(a, b lockkeeper.Claim) bool {
	return a.ID == b.ID && a.Holder == b.Holder && a.Expires == b.Expires && sameProcess(a.Process, b.Process)
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
		return s.note(&lockkeeper.Event{Kind: lockkeeper.EventRecoverFailed, Actor: system, GrantID: f.rec.ID,
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
	var now lockkeeper.Moment
	err := m.store.View(ctx, func(r lockkeeper.Reader) (err error) {
		now = r.Now()
		if f.rec, err = r.Get(id); err != nil || f.rec == nil {
			return err
		}
		f.claims, err = r.Claims(f.rec.Holder)
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
