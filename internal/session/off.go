package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"lockkeeper"
)

// offLock is the lock that a person holds while the checks of sessions are off. Like any other
// lock, it expires, is in the event log, and is visible to everyone.
var offLock = lockkeeper.Lock{Target: lockkeeper.Target{Path: ".lockkeeper/off", Kind: lockkeeper.Node}, Mode: lockkeeper.Write}

// IsOff reports whether the locks of a path say that the checks of sessions are off.
func IsOff(path string) bool { return path == offLock.Path }

// A Pause is a period during which sessions are not checked.
type Pause struct {
	By      string    `json:"by"`
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"`
	GrantID string    `json:"grant"`
}

// longestPause is the longest that the checks can be off at a time.
const longestPause = 24 * time.Hour

// MaySwitchOff returns the error that SwitchOff would return now, for a caller that asks a person
// first. It checks the actor, the duration, and whether the checks are already off.
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

// Clock formats a time of day, with the date if it is not the date of now.
func Clock(at, now time.Time) string {
	at = at.In(now.Location())
	if at.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return at.Format(time.TimeOnly)
	}
	return at.Format(time.DateTime)
}

// SwitchOff switches the checks of sessions off for a time. Only a person may do so, and only
// while they are on.
func (b *Registry) SwitchOff(ctx context.Context, by lockkeeper.Actor, reason string, d time.Duration) (*Pause, error) {
	if err := b.MaySwitchOff(ctx, by, d); err != nil {
		return nil, err
	}
	const fact = "the checks of sessions are off"
	g, err := b.app.Acquire(ctx, lockkeeper.Request{Holder: by.Name, Locks: []lockkeeper.Lock{offLock}, TTL: d, Metadata: map[string]string{keyReason: cmp.Or(reason, fact)}}, 0)
	if lockkeeper.CodeOf(err) == lockkeeper.CodeBlocked { // another caller was faster, or the whole root is locked
		err = cmp.Or(b.MaySwitchOff(ctx, by, d), err)
	}
	if err != nil {
		return nil, err
	}
	words := fact + " for " + d.String()
	if reason != "" {
		words += ": " + reason
	}
	// The lock event records neither the duration nor the reason.
	if _, err := b.app.Locks.Note(ctx, "", lockkeeper.Event{Kind: lockkeeper.EventDecided, Actor: by, GrantID: g.ID, Holder: by.Name, Reason: words}); err != nil {
		_, ending := b.app.Release(context.WithoutCancel(ctx), g.ID)
		return nil, errors.Join(err, ending)
	}
	return b.Off(ctx)
}

// SwitchOn ends the current pause and reports whether there was one.
func (b *Registry) SwitchOn(ctx context.Context) (bool, error) {
	p, err := b.Off(ctx)
	if err != nil || p == nil {
		return false, err
	}
	return b.app.Release(ctx, p.GrantID)
}

// Off returns the current pause, or nil if sessions are checked. Only a holder of offLock itself
// has switched the checks off. A holder of the whole root has not.
func (b *Registry) Off(ctx context.Context) (*Pause, error) {
	found, err := b.app.Locks.CheckConflicts(ctx, []lockkeeper.Lock{offLock})
	for _, c := range found {
		if c.BlockingPath == offLock.Path && c.Kind == lockkeeper.Held && c.ExpiresAt != nil {
			return &Pause{By: c.Holder, Since: c.AcquiredAt, Until: *c.ExpiresAt, GrantID: c.GrantID}, err
		}
	}
	return nil, err
}
