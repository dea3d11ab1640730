package api

import (
	"context"
	"time"
)

// A roomName is a class of requests with its own concurrency limit, so that long requests do not block short
// ones.
type roomName uint8

const (
	roomUsual   roomName = iota
	roomLarge            // large bodies
	roomWaits            // waits for locks
	roomStreams          // event streams
	roomOpen             // unauthenticated requests
)

// A room limits the number of concurrent requests of one class.
type room struct {
	places chan struct{}
	wait   time.Duration // longest wait for a place
	what   string
}

func newRoom(size int, wait time.Duration, what string) *room {
	return &room{places: make(chan struct{}, size), wait: wait, what: what}
}

// enter takes a place in the room, or returns an error if none becomes free in time. The caller must call leave.
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
		return nil, &refusal{code: codeBusy, reason: "too many " + m.what + " at once", next: "try again in a moment", after: 2 * time.Second}
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// taken returns the number of occupied places.
func (m *room) taken() int { return len(m.places) }
