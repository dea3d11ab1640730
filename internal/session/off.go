package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"lockkeeper"
)

// offLock is what a person holds while the checks of sessions are off. It is a lock like
// any other: it ends by itself, it is in the record of events, and everybody sees it.
var offLock = lockkeeper.Lock{Target: lockkeeper.Target{Path: ".lockkeeper/off", Kind: lockkeeper.Node}, Mode: lockkeeper.Write}

// Pause is a time during which sessions are not checked.
type Pause struct {
	By      string    `json:"by"`
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"`
	GrantID string    `json:"grant"`
}

// longestPause is the longest that the checks can be off at a time.
const longestPause = 24 * time.Hour

// MaySwitchOff refuses what SwitchOff would refuse by what is known now, for who asks a
// person in between: who it is, how long, and that the checks are off already.
func (b *Registry) MaySwitchOff(ctx context.Context, by lockkeeper.Actor, d time.Duration) error {
	switch {
	case by.Kind != lockkeeper.ActorPerson:
		return &lockkeeper.RefusedError{Act: "off", Reason: "only a person may switch the checks off", Next: "ask one"}
	case d < time.Second || d > longestPause:
		return &lockkeeper.InputError{Field: "time", Value: d.String(), Reason: "not between a second and a day", Next: "lockkeeper off 30m"}
	}
	p, err := b.Off(ctx)
	if err != nil || p == nil {
		return err
	}
	return &lockkeeper.RefusedError{Act: "off", Reason: fmt.Sprintf("the checks are off already, by %s until %s", p.By, Clock(p.Until, b.now())), Next: "lockkeeper off --end"}
}

// Clock is a time of day, with its date where that is another one than now.
func Clock(at, now time.Time) string {
	at = at.In(now.Location())
	if at.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return at.Format(time.TimeOnly)
	}
	return at.Format(time.DateTime)
}

// SwitchOff stops the checks of sessions for a time. Only a person may, and only once.
func (b *Registry) SwitchOff(ctx context.Context, by lockkeeper.Actor, reason string, d time.Duration) (*Pause, error) {
	if err := b.MaySwitchOff(ctx, by, d); err != nil {
		return nil, err
	}
	const fact = "the checks of sessions are off"
	g, err := b.app.Acquire(ctx, lockkeeper.Request{Holder: by.Name, Locks: []lockkeeper.Lock{offLock}, TTL: d, Metadata: map[string]string{keyReason: cmp.Or(reason, fact)}}, 0)
	if lockkeeper.CodeOf(err) == lockkeeper.CodeBlocked { // by who was faster, or has locked the whole root
		err = cmp.Or(b.MaySwitchOff(ctx, by, d), err)
	}
	if err != nil {
		return nil, err
	}
	words := fact + " for " + d.String()
	if reason != "" {
		words += ": " + reason
	}
	// That a lock was taken is recorded with it, but neither for how long nor why.
	if _, err := b.app.Locks.Note(ctx, "", lockkeeper.Event{Kind: lockkeeper.EventDecided, Actor: by, GrantID: g.ID, Holder: by.Name, Reason: words}); err != nil {
		_, ending := b.app.Release(context.WithoutCancel(ctx), g.ID)
		return nil, errors.Join(err, ending)
	}
	return b.Off(ctx)
}

// SwitchOn ends a pause. It reports whether there was one.
func (b *Registry) SwitchOn(ctx context.Context) (bool, error) {
	p, err := b.Off(ctx)
	if err != nil || p == nil {
		return false, err
	}
	return b.app.Release(ctx, p.GrantID)
}

// Off is the pause that is on; nil when sessions are checked, as they should be. Only who
// holds the lock itself has switched them off, and not who holds all of the root: that one
// asked for quiet.
func (b *Registry) Off(ctx context.Context) (*Pause, error) {
	found, err := b.app.Locks.CheckConflicts(ctx, []lockkeeper.Lock{offLock})
	for _, c := range found {
		if c.BlockingPath == offLock.Path && c.Kind == lockkeeper.Held && c.ExpiresAt != nil {
			return &Pause{By: c.Holder, Since: c.AcquiredAt, Until: *c.ExpiresAt, GrantID: c.GrantID}, err
		}
	}
	return nil, err
}
