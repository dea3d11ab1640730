package lease

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
)

// An access is one operation on a lease file under its guard.
type access struct {
	*leaseFile
	guard  *guard
	found  *fileState // the file when the operation began
	now    Reading
	grace  time.Duration
	owner  string
	shared bool
	note   func(string)
}

// judge judges the file and records when it was seen first.
func (at *access) judge() (verdict, error) {
	seen := at.guard.sightingOf(at.found)
	v, err := judge(at.path, at.found, seen, at.now, at.grace, at.guard.diskTime)
	if key := at.found.key(); err == nil && key != seen.Key && key != "" {
		at.guard.Seen = sighting{Key: key, At: at.now}
		err = at.guard.save()
	}
	return v, err
}

// acquire adds m as a holder if no other holder conflicts. It returns the conflicting
// holder otherwise. began is when the caller started to wait.
func (at *access) acquire(s member, began time.Time) (by *Info, broke bool, err error) {
	next := &hold{Token: s.Token, Shared: at.shared, By: []member{s}}
	if at.shared {
		next.Token = newToken()
	}
	v, err := at.judge()
	if err != nil {
		return nil, false, err
	}
	held, done := at.guard.Held, false
	recorded := held != nil && at.found.hasToken(held.Token)
	switch {
	case held != nil && !recorded && held.isCurrent(at.now, at.grace): // a recorded holder keeps the lease, whatever foreign tools did to its file
		return at.info(), false, nil
	case recorded && held.Shared && at.shared && !v.stale:
		next = held.with(s, at.now, at.grace)
		done, err = at.replace(next)
	case !at.found.exists():
		done, err = at.create(next.payload())
	case v.stale:
		broke = true
		done, err = at.breakFor(next, v)
	default:
		return at.info(), false, nil
	}
	if err == nil && !done { // a foreign tool was faster
		if at.found, err = at.inspect(at.name); err != nil {
			return nil, false, err
		}
		return at.info(), false, nil
	}
	if err == nil {
		next.By[len(next.By)-1].AcquiredIn = time.Since(began)
		err = at.record(next)
	}
	if err != nil && done { // the caller is not told that it holds the lease
		err = errors.Join(err, at.rollBack(next, held))
	}
	return nil, broke, err
}

func (at *access) record(next *hold) error {
	at.guard.Held, at.guard.Seen = next, sighting{}
	return at.guard.save()
}

// rollBack restores the file to its state before a hold that could not be recorded.
func (at *access) rollBack(next, before *hold) error {
	now, err := at.inspect(at.name)
	if err != nil || !now.hasToken(next.Token) {
		return err
	}
	at.found = now
	if before != nil && before.Token == next.Token { // the earlier readers keep the file
		_, err = at.replace(before)
		return err
	}
	_, err = at.remove(now)
	return err
}

// replace writes a new state of this program's own lease file.
func (at *access) replace(next *hold) (bool, error) {
	done, err := at.swap(at.found, next.payload())
	if done {
		err = at.disk.Remove(at.dir, at.draftName())
	}
	return done, err
}

// breakFor replaces a stale file. A malformed one is kept under another name.
func (at *access) breakFor(next *hold, v verdict) (bool, error) {
	if err := at.audit(v); err != nil {
		return false, err
	}
	done, err := at.swap(at.found, next.payload())
	if err != nil || !done {
		return false, err
	}
	if at.found.payload != nil {
		at.note(fmt.Sprintf("lease file %s of %s was stale and has been broken: it expired at %s", at.path, at.found.payload.Owner, formatTime(at.found.payload.ExpiresAt.Time)))
		return true, at.disk.Remove(at.dir, at.draftName())
	}
	kept := at.name + ".corrupt." + at.now.Wall.UTC().Format("20060102T150405.000000000Z")
	if err := at.disk.Move(at.dir, at.draftName(), at.dir, kept); err != nil {
		return true, err
	}
	at.note(fmt.Sprintf("lease file %s was malformed (%s) and has been broken; its bytes are kept in %s", at.path, at.found.problem, filepath.Join(filepath.Dir(at.path), kept)))
	return true, nil
}

// findHold returns the hold with a token and the index of its member. Without a record it
// uses the file itself.
func (at *access) findHold(token string) (*hold, int) {
	if held := at.guard.Held; held != nil {
		if n := held.find(token); n >= 0 {
			return held, n
		}
	}
	if at.found.hasToken(token) {
		return &hold{Token: token, By: []member{{payload: *at.found.payload, At: at.now, TTL: at.found.payload.ttl()}}}, 0
	}
	return nil, -1
}

// renew extends a holder's lease by its whole TTL.
func (at *access) renew(token string, opt Options, phase string) error {
	held, n := at.findHold(token)
	switch {
	case held != nil && at.found.unreadable: // the file may be unreadable by mistake; no other process can acquire it meanwhile
		return lockkeeper.WithNext(fmt.Errorf("lease file %s: %s", at.path, at.found.problem), "make it readable for its holder again")
	case held == nil || !at.found.hasToken(held.Token):
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
	case !done: // another process replaced the file after it was read
		if at.found, err = at.inspect(at.name); err != nil {
			return err
		}
		return at.lost()
	}
	return at.record(next)
}

// release removes a holder from the hold, and the file with the last one.
func (at *access) release(token string) (released bool, err error) {
	held, n := at.findHold(token)
	if n < 0 {
		return false, nil
	}
	intact := at.found.hasToken(held.Token)
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
	// The record is removed first. A crash in between leaves only a file that expires.
	if err := at.forget(token); err != nil || !intact {
		return false, err
	}
	return at.remove(at.found)
}

// describeLeftFile says why a released holder's file was left as it is.
func (at *access) describeLeftFile(held *hold) string {
	switch {
	case !at.found.exists():
		return "its file was already gone"
	case at.found.payload == nil:
		return "its file is now malformed (" + at.found.problem + ") and was not changed"
	case at.found.hasToken(held.Token):
		return "its file was changed at the same moment and was left as it is"
	}
	return "its file now belongs to " + sanitize(at.found.payload.Owner) + " and was not changed"
}

// forget removes a holder from the record.
func (at *access) forget(token string) error {
	held := at.guard.Held
	if held == nil || held.find(token) < 0 {
		return nil
	}
	if at.guard.Held = held.without(token, at.now, at.grace); len(at.guard.Held.By) == 0 {
		at.guard.Held = nil
	}
	return at.guard.save()
}

// lost returns the error for a holder whose file is gone or replaced.
func (at *access) lost() error {
	return &LostError{Path: at.path, Now: *at.described(&record{Seen: at.guard.sightingOf(at.found)})}
}

func (at *access) info() *Info { return at.described(at.guard.record) }

func (at *access) described(rec *record) *Info {
	return describe(at.path, at.found, rec, at.now, at.grace)
}

// A breakRecord is the audit line about a broken lease file.
type breakRecord struct {
	At         time.Time              `json:"at"`
	Actor      lockkeeper.Actor       `json:"actor"`
	Action     string                 `json:"action"`
	Target     string                 `json:"target"`
	Previous   *previousHolder        `json:"previous_holder"` // null if the file did not name a previous holder
	Reason     string                 `json:"reason"`
	Conditions []lockkeeper.Condition `json:"conditions"`
}

// A previousHolder is the holder of a broken lease file, without the token, which is
// secret.
type previousHolder struct {
	Owner     string `json:"owner"`
	PID       int    `json:"pid"`
	CreatedAt stamp  `json:"created_at"`
	ExpiresAt stamp  `json:"expires_at"`
	RenewedAt stamp  `json:"last_renewed_at"`
}

// audit records that the file is about to be broken. If it fails, the file must not be
// broken.
func (at *access) audit(v verdict) (err error) {
	b := breakRecord{At: at.now.Wall.UTC(), Actor: lockkeeper.Actor{Name: at.owner, Kind: lockkeeper.ActorHolder}, Action: "break", Target: at.path,
		Reason: conditionsText(v.conditions), Conditions: v.conditions}
	if p := at.found.payload; p != nil {
		b.Previous = &previousHolder{p.Owner, p.PID, p.CreatedAt, p.ExpiresAt, p.RenewedAt}
	}
	line, err := json.Marshal(b)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(at.path+".audit.jsonl", os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, filePerm)
	if err != nil {
		return fmt.Errorf("lease file %s is stale but was not broken because the audit line cannot be written: %w", at.path, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.Write(append(line, '\n'))
	return err
}

func conditionsText(list []lockkeeper.Condition) (text string) {
	for i, c := range list {
		if i > 0 {
			text += "; "
		}
		text += c.Name + " (" + c.Fact + ")"
	}
	return text
}
