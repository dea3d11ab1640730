package api

import (
	"context"
	"time"
)

// roomName says where requests of a kind find room: those that stay for long must not
// keep out those that do not.
type roomName uint8

const (
	roomUsual   roomName = iota
	roomLarge            // large bodies
	roomWaits            // in the line for locks
	roomStreams          // of events
	roomOpen             // of whom nobody knows
)

// room is how many requests of a kind there are at once.
type room struct {
	places chan struct{}
	wait   time.Duration // for a place
	what   string
}

func newRoom(size int, wait time.Duration, what string) *room {
	return &room{places: make(chan struct{}, size), wait: wait, what: what}
}

// enter takes a place, until leave.
func (m *room) enter(ctx context.Context) (leave func(), err error) {
	leave = func() { <-m.places }
	select {
	case m.places <- struct{}{}:
		return leave, nil
	default:
	}
	timer := time.NewTimer(m.wait)
	defer timer.Stop()
	select {
	case m.places <- struct{}{}:
		return leave, nil
	case <-timer.C:
		return nil, &refusal{code: codeBusy, reason: "as many " + m.what + " as can be are under way", next: "try again in a moment", after: 2 * time.Second}
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// taken is how many places are taken.
func (m *room) taken() int { return len(m.places) }
