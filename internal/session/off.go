package session

import (
	"context"
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

// LongestPause is the longest that the checks can be off at a time.
const LongestPause = 24 * time.Hour

// SwitchOff stops the checks of sessions for a time. Only a person may, and only once.
func (b *Book) SwitchOff(ctx context.Context, by lockkeeper.Actor, reason string, d time.Duration) (*Pause, error) {
	switch {
	case by.Kind != lockkeeper.ActorPerson:
		return nil, &lockkeeper.RefusedError{Act: "off", Reason: "only a person may switch the checks off", Next: "ask one"}
	case d < time.Second || d > LongestPause:
		return nil, &lockkeeper.InputError{Field: "time", Value: d.String(), Reason: "between a second and " + LongestPause.String(), Next: "lockkeeper off 30m"}
	}
	if reason == "" {
		reason = "the checks of sessions are off"
	}
	_, err := b.app.Acquire(ctx, lockkeeper.Request{Holder: by.Name, Locks: []lockkeeper.Lock{offLock}, TTL: d, Metadata: map[string]string{keyReason: reason}}, 0)
	if lockkeeper.CodeOf(err) == lockkeeper.CodeBlocked {
		p, err := b.Off(ctx)
		if err == nil && p != nil {
			err = &lockkeeper.RefusedError{Act: "off", Reason: fmt.Sprintf("the checks are off already, by %s until %s", p.By, p.Until.Format(time.TimeOnly)), Next: "lockkeeper off --end"}
		}
		return p, err
	}
	if err != nil {
		return nil, err
	}
	return b.Off(ctx)
}

// SwitchOn ends a pause. It reports whether there was one.
func (b *Book) SwitchOn(ctx context.Context) (bool, error) {
	p, err := b.Off(ctx)
	if err != nil || p == nil {
		return false, err
	}
	return b.app.Release(ctx, p.GrantID)
}

// Off is the pause that is on; nil when sessions are checked, as they should be.
func (b *Book) Off(ctx context.Context) (*Pause, error) {
	found, err := b.app.Locks.CheckConflicts(ctx, []lockkeeper.Lock{offLock})
	for _, c := range found {
		if c.Kind == lockkeeper.Held && c.ExpiresAt != nil {
			return &Pause{By: c.Holder, Since: c.AcquiredAt, Until: *c.ExpiresAt, GrantID: c.GrantID}, err
		}
	}
	return nil, err
}
