package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// streamPage is how many bytes of events are on their way to one client at most, unless a
// single event has more.
const streamPage = 16 << 10

// forgotten is what a client is told where the log does not keep what it wants next.
type forgotten struct {
	From   uint64 `json:"from"`
	To     uint64 `json:"to"`
	Reason string `json:"reason"`
}

// stream sends events to one client, from where it says it is, for as long as it listens.
// It reads from the feed, which is shared, as fast as the client takes it.
func (s *Server) stream(c *call) error {
	after, err := s.streamFrom(c.r)
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	c.w.Header().Set("X-Accel-Buffering", "no") // of proxies
	if c.r.Method == http.MethodHead {
		return nil
	}
	out := &client{s: s, c: c, after: after, checked: time.Now()}
	latest, err := s.latest(c.r.Context())
	if err != nil {
		return err
	}
	if after > latest { // it knows of events that this log does not have
		err = out.send(frameOf(latest, "gap", forgotten{From: latest + 1, To: after, Reason: "the log is another one than the one you have seen: read the state anew"}))
		out.after = latest
	} else {
		err = out.send(fmt.Appendf(nil, "retry: 2000\nid: %d\n\n", after))
	}
	for err == nil {
		err = out.more()
	}
	return errAnswered // however it ended: the client comes back
}

// streamFrom is the last event that a client says it has seen; one that says nothing
// begins now.
func (s *Server) streamFrom(r *http.Request) (uint64, error) {
	query, err := decodeQuery[streamQuery](r.URL.RawQuery)
	if err != nil {
		return 0, err
	}
	if header := r.Header.Get("Last-Event-ID"); header != "" { // of a browser that comes back
		seq, err := strconv.ParseUint(header, 10, 63)
		if err != nil {
			return 0, &lockkeeper.InputError{Field: "Last-Event-ID", Value: header, Reason: "not the number of an event", Next: "send the id of the last event that you got"}
		}
		return seq, nil
	}
	if query.After != nil {
		return *query.After, nil
	}
	return s.latest(r.Context())
}

type streamQuery struct {
	After *uint64 `json:"after"` // the last event that was seen; none: begin now
}

// latest is the number of the last event of the log.
func (s *Server) latest(ctx context.Context) (uint64, error) {
	events, err := s.opt.App.Locks.Events(ctx, store.EventQuery{Latest: true, Limit: 1})
	if err != nil || len(events) == 0 {
		return 0, err
	}
	return events[0].Seq, nil
}

// client is one who listens.
type client struct {
	s       *Server
	c       *call
	after   uint64
	checked time.Time // when the client's permission was last checked
	page    []byte    // what is on its way, in memory that is used again
}

// more sends the next events, or a heartbeat if none arrive for a while.
func (l *client) more() error {
	if time.Since(l.checked) >= l.s.opt.Limits.Heartbeat {
		if _, _, still, err := l.s.whoIs(l.c.r); err != nil || !still {
			return errStranger // they were removed meanwhile, or their session is over
		}
		l.checked = time.Now()
	}
	ctx, cancel := context.WithDeadline(l.c.r.Context(), l.checked.Add(l.s.opt.Limits.Heartbeat)) // when it is looked at again
	defer cancel()
	events, err := l.s.feed.Next(ctx, l.after)
	switch {
	case errors.Is(err, context.DeadlineExceeded) && l.c.r.Context().Err() == nil:
		return l.send([]byte(": alive\n\n"))
	case err != nil:
		return err
	}
	text, sent := l.fill(events)
	l.s.metrics.delivered(sent)
	return l.send(text)
}

// fill takes events onto the page, as many as fit and at least one. It does not keep the
// list, which others replace: a client that is slow would keep many of them alive.
func (l *client) fill(events []lockkeeper.Event) (text []byte, sent int) {
	l.page = l.page[:0]
	for _, ev := range events {
		next := l.s.frames.of(ev)
		if len(l.page)+len(next) > streamPage && sent > 0 {
			break
		}
		sent++
		if ev.Seq > l.after+1 {
			l.page = append(l.page, frameOf(ev.Seq-1, "gap", forgotten{From: l.after + 1, To: ev.Seq - 1, Reason: "the log does not keep them any more: read the state anew"})...)
		}
		l.after = ev.Seq
		if len(l.page) == 0 && len(next) > streamPage {
			return next, sent // shared by all who get it
		}
		l.page = append(l.page, next...)
	}
	return l.page, sent
}

// send writes to a client that has to take it soon.
func (l *client) send(text []byte) error {
	if err := l.c.control.SetWriteDeadline(time.Now().Add(l.s.opt.Limits.StreamWrite)); err != nil {
		return err
	}
	if _, err := l.c.w.Write(text); err != nil {
		return err
	}
	return l.c.control.Flush()
}

// frameOf is one event of a stream.
func frameOf(id uint64, kind string, data any) []byte {
	body, err := json.Marshal(data)
	if err != nil {
		body = fmt.Appendf(nil, `{"error":%q}`, err.Error())
	}
	return fmt.Appendf(nil, "id: %d\nevent: %s\ndata: %s\n\n", id, kind, body)
}

// frames remembers the latest events as they are sent, so that each is encoded once for
// all clients that keep up.
type frames struct {
	mu   sync.RWMutex
	ring [512]frame
}

type frame struct {
	seq  uint64
	text []byte
}

func (f *frames) of(ev lockkeeper.Event) []byte {
	place := &f.ring[ev.Seq%uint64(len(f.ring))]
	f.mu.RLock()
	known := *place
	f.mu.RUnlock()
	if known.seq == ev.Seq {
		return known.text
	}
	text := frameOf(ev.Seq, string(ev.Kind), ev)
	f.mu.Lock()
	if place.seq < ev.Seq { // a slow client must not evict events that others need
		*place = frame{ev.Seq, text}
	}
	f.mu.Unlock()
	return text
}
