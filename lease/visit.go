package lease

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// visit is one of ours at a lease file, alone under its guard.
type visit struct {
	*place
	guard  *guard
	found  *found // what the file was when the visit began
	now    Reading
	grace  time.Duration
	owner  string
	shared bool
	note   func(string)
}

// judge decides about the file, and remembers when it was seen first.
func (at *visit) judge() (verdict, error) {
	seen := at.guard.sightingOf(at.found)
	v, err := judge(at.path, at.found, seen, at.now, at.grace, at.guard.diskTime)
	if key := at.found.key(); err == nil && key != seen.Key && key != "" {
		at.guard.Seen = sighting{Key: key, At: at.now}
		err = at.guard.save()
	}
	return v, err
}

// take makes s, who began to ask some time ago, a holder, if it can be one now. by is
// who is in the way; nil: nobody.
func (at *visit) take(s stay, began time.Time) (by *Info, broke bool, err error) {
	next := &hold{Token: s.Token, Shared: at.shared, By: []stay{s}}
	if at.shared {
		next.Token = newToken()
	}
	v, err := at.judge()
	if err != nil {
		return nil, false, err
	}
	held, done := at.guard.Held, false
	recorded := held != nil && at.found.carries(held.Token)
	switch {
	case held != nil && !recorded && held.isLive(at.now, at.grace): // whatever others did to its file
		return at.info(), false, nil
	case recorded && held.Shared && at.shared && !v.stale:
		next = held.with(s, at.now, at.grace)
		done, err = at.replace(next)
	case !at.found.isThere():
		done, err = at.create(next.payload())
	case v.stale:
		broke = true
		done, err = at.breakFor(next, v)
	default:
		return at.info(), false, nil
	}
	if err == nil && !done { // others of another kind were faster
		if at.found, err = at.look(at.name); err != nil {
			return nil, false, err
		}
		return at.info(), false, nil
	}
	if err == nil {
		next.By[len(next.By)-1].AcquiredIn = time.Since(began)
		err = at.keep(next)
	}
	if err != nil && done { // nobody is told that it is theirs
		err = errors.Join(err, at.takeBack(next, held))
	}
	return nil, broke, err
}

// keep records a hold whose file was just written.
func (at *visit) keep(next *hold) error {
	at.guard.Held, at.guard.Seen = next, sighting{}
	return at.guard.save()
}

// takeBack puts the file back as it was before a hold that could not be recorded.
func (at *visit) takeBack(next, before *hold) error {
	now, err := at.look(at.name)
	if err != nil || !now.carries(next.Token) {
		return err
	}
	at.found = now
	if before != nil && before.Token == next.Token { // a group of readers, without the last one
		_, err = at.replace(before)
		return err
	}
	_, err = at.remove(now)
	return err
}

// replace puts another state of our own lease in its place.
func (at *visit) replace(next *hold) (bool, error) {
	done, err := at.swap(at.found, next.payload())
	if done {
		err = at.disk.Remove(at.dir, at.draft())
	}
	return done, err
}

// breakFor puts a lease in the place of a stale one. What was no lease is kept.
func (at *visit) breakFor(next *hold, v verdict) (bool, error) {
	if err := at.audit(v); err != nil {
		return false, err
	}
	done, err := at.swap(at.found, next.payload())
	if err != nil || !done {
		return false, err
	}
	if at.found.payload != nil {
		at.note(fmt.Sprintf("the lease %s of %s was stale and has been broken: it expired at %s", at.path, at.found.payload.Owner, shown(at.found.payload.ExpiresAt.Time)))
		return true, at.disk.Remove(at.dir, at.draft())
	}
	kept := at.name + ".corrupt." + at.now.Wall.UTC().Format("20060102T150405.000000000Z")
	if err := at.disk.Move(at.dir, at.draft(), at.dir, kept); err != nil {
		return true, err
	}
	at.note(fmt.Sprintf("the lease %s was no lease (%s) and has been broken; its bytes are kept in %s", at.path, at.found.odd, filepath.Join(filepath.Dir(at.path), kept)))
	return true, nil
}

// part finds a token's part in the lease. One whose record is lost is known by the
// file itself.
func (at *visit) part(token string) (*hold, int) {
	if held := at.guard.Held; held != nil {
		if n := held.find(token); n >= 0 {
			return held, n
		}
	}
	if at.found.carries(token) {
		return &hold{Token: token, By: []stay{{payload: *at.found.payload, At: at.now, TTL: at.found.payload.lasts()}}}, 0
	}
	return nil, -1
}

// renew gives a holder its whole time again.
func (at *visit) renew(token string, opt Options, phase string) error {
	held, n := at.part(token)
	switch {
	case held != nil && at.found.shut: // by a mistake, perhaps: nobody else can take it meanwhile
		return fmt.Errorf("lease %s: %s; next: make it readable for its holder again", at.path, at.found.odd)
	case held == nil || !at.found.carries(held.Token):
		return at.lost()
	}
	s := held.By[n]
	if opt.TTL >= 0 {
		s.TTL = opt.TTL
	}
	if phase != "" {
		s.Phase = phase
	}
	s.RenewedAt, s.ExpiresAt = term(at.now.Wall, s.TTL)
	s.At = at.now
	s.Renewals++
	next := held.with(s, at.now, at.grace)
	done, err := at.replace(next)
	switch {
	case err != nil:
		return err
	case !done: // stolen since the look
		if at.found, err = at.look(at.name); err != nil {
			return err
		}
		return at.lost()
	}
	return at.keep(next)
}

// release ends a holder's part.
func (at *visit) release(token string) (released bool, err error) {
	held, n := at.part(token)
	if n < 0 {
		return false, nil
	}
	intact := at.found.carries(held.Token)
	next := held.without(token, at.now, at.grace)
	if len(next.By) > 0 {
		if intact {
			if intact, err = at.replace(next); err != nil {
				return false, err
			}
		}
		at.guard.Held = next
		return intact, at.guard.save()
	}
	// The record first: a file without a record ends like that of anybody who died.
	if err := at.forget(token); err != nil || !intact {
		return false, err
	}
	return at.remove(at.found)
}

// left is what became of the file of a hold that ended without it.
func (at *visit) left(held *hold) string {
	switch {
	case !at.found.isThere():
		return "its file was gone already"
	case at.found.payload == nil:
		return "its file, which is no lease any more (" + at.found.odd + "), is left as it is"
	case at.found.carries(held.Token):
		return "its file, which somebody changed at this moment, is left as it is"
	}
	return "its file, which is of " + legible(at.found.payload.Owner) + " by now, is left as it is"
}

// forget strikes a holder off the record.
func (at *visit) forget(token string) error {
	held := at.guard.Held
	if held == nil || held.find(token) < 0 {
		return nil
	}
	if at.guard.Held = held.without(token, at.now, at.grace); len(at.guard.Held.By) == 0 {
		at.guard.Held = nil
	}
	return at.guard.save()
}

// lost is what a holder is told whose lease it is not any more: what the file says.
func (at *visit) lost() error {
	return &LostError{Path: at.path, Now: *at.described(&record{Seen: at.guard.sightingOf(at.found)})}
}

// info is what is known of the lease as it was found.
func (at *visit) info() *Info { return at.described(at.guard.record) }

func (at *visit) described(rec *record) *Info {
	return describe(at.path, at.found, rec, at.now, at.grace)
}
