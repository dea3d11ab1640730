package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// streamPage limits the bytes in flight to one client. A single larger event is sent alone.
const streamPage = 16 << 10

// statePause is the shortest time between two states for one client.
const statePause = 250 * time.Millisecond

// kindsPause is the shortest time between two lists of kinds for one client.
const kindsPause = 500 * time.Millisecond

// forgotten is the data of a gap event: the log no longer has the events that the client needs next.
type forgotten struct {
	From   uint64 `json:"from"`
	To     uint64 `json:"to"`
	Reason string `json:"reason"`
}

// stream sends events to one client, starting after the last event that the client has seen, until the client
// disconnects. It reads from the shared feed as fast as the client reads.
func (s *Server) stream(c *call) error {
	query, err := decodeQuery[streamQuery](c.r.URL.RawQuery)
	if err != nil {
		return err
	}
	after, err := s.streamFrom(c.r, query)
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	c.w.Header().Set("X-Accel-Buffering", "no") // disables buffering in proxies
	if c.r.Method == http.MethodHead {
		return nil
	}
	out := &client{s: s, c: c, after: after, states: query.State, kinds: query.Kinds, checked: time.Now()}
	latest, err := s.latest(c.r.Context())
	if err != nil {
		return err
	}
	switch {
	case query.State:
		err = out.sendState()
	case after > latest: // the client has seen events that are not in this log
		err = out.send(frameOf(latest, "gap", forgotten{From: latest + 1, To: after, Reason: "this is not the log that you have followed: read the state again"}))
		out.after = latest
	default:
		err = out.send(fmt.Appendf(nil, "retry: 2000\nid: %d\n\n", after))
	}
	for err == nil {
		err = out.more()
	}
	return errAnswered // the client reconnects after any error
}

// streamFrom returns the last event that the client has seen. Without one, the stream starts with the next
// event.
func (s *Server) streamFrom(r *http.Request, query streamQuery) (after uint64, err error) {
	if header := r.Header.Get("Last-Event-ID"); header != "" { // a browser that reconnects sets this header
		seq, err := strconv.ParseUint(header, 10, 63)
		if err != nil {
			return 0, &lockkeeper.InputError{Field: "Last-Event-ID", Value: header, Reason: "not the number of an event", Next: "send the id of the last event that you received"}
		}
		return seq, nil
	}
	if query.After != nil {
		return *query.After, nil
	}
	return s.latest(r.Context())
}

type streamQuery struct {
	After *uint64 `json:"after" doc:"The last event that the client has seen. Default: the last of the log."`
	State bool    `json:"state" doc:"Send the whole state, at first and after each change, instead of events."`
	Kinds bool    `json:"kinds" doc:"Send only the kinds of the events, as a list, at most twice a second."`
}

// latest returns the number of the last event in the log.
func (s *Server) latest(ctx context.Context) (uint64, error) {
	events, err := s.opt.App.Locks.Events(ctx, store.EventQuery{Latest: true, Limit: 1})
	if err != nil || len(events) == 0 {
		return 0, err
	}
	return events[0].Seq, nil
}

// A client is the receiver of one stream.
type client struct {
	s       *Server
	c       *call
	after   uint64
	states  bool      // send the state instead of events
	kinds   bool      // send only the kinds of events
	checked time.Time // when the client's permission was last checked
}

// more sends the next events, or a heartbeat if none arrive for a while.
func (l *client) more() error {
	if time.Since(l.checked) >= l.s.opt.Limits.Heartbeat {
		if _, _, still, err := l.s.whoIs(l.c.r); err != nil || !still {
			return errStranger // the account was removed, or the session has ended
		}
		l.checked = time.Now()
	}
	ctx, cancel := context.WithDeadline(l.c.r.Context(), l.checked.Add(l.s.opt.Limits.Heartbeat)) // the deadline is the time of the next check
	defer cancel()
	events, err := l.s.feed.Next(ctx, l.after)
	switch {
	case errors.Is(err, context.DeadlineExceeded) && l.c.r.Context().Err() == nil:
		return l.send([]byte(": alive\n\n"))
	case err != nil:
		return err
	}
	if l.states {
		select {
		case <-time.After(statePause): // changes during the pause are sent as one state
		case <-l.c.r.Context().Done():
			return l.c.r.Context().Err()
		}
		return l.sendState()
	}
	if l.kinds {
		return l.sendKinds(events)
	}
	text, sent := l.fill(events)
	l.s.metrics.sent.Add(float64(sent))
	return l.send(text)
}

// sendState sends the state with the number of the last event that it includes.
func (l *client) sendState() error {
	state, err := l.s.opt.View.State(l.c.r.Context())
	if err != nil {
		return err
	}
	text, err := state.JSON()
	if err != nil {
		return err
	}
	l.after = max(l.after, state.Seq)
	return l.send(fmt.Appendf(nil, "id: %d\nevent: state\ndata: %s\n\n", state.Seq, text))
}

// sendKinds sends the kinds of events and of those that follow at once. Then it pauses.
func (l *client) sendKinds(events []lockkeeper.Event) (err error) {
	seen := map[string]bool{}
	for err == nil && len(events) > 0 {
		if events[0].Seq > l.after+1 {
			seen["gap"] = true
		}
		for _, ev := range events {
			seen[string(ev.Kind)] = true
		}
		l.after = events[len(events)-1].Seq
		if events = nil; l.s.feed.Last() > l.after {
			events, err = l.s.feed.Next(l.c.r.Context(), l.after)
		}
	}
	if err == nil {
		err = l.send(frameOf(l.after, "kinds", slices.Sorted(maps.Keys(seen))))
	}
	select {
	case <-time.After(kindsPause):
	case <-l.c.r.Context().Done():
	}
	return err
}

// fill encodes as many events as fit on the page, and at least one.
func (l *client) fill(events []lockkeeper.Event) (text []byte, sent int) {
	for _, ev := range events {
		next := frameOf(ev.Seq, string(ev.Kind), ev)
		if len(text)+len(next) > streamPage && sent > 0 {
			break
		}
		sent++
		if ev.Seq > l.after+1 {
			text = append(text, frameOf(ev.Seq-1, "gap", forgotten{From: l.after + 1, To: ev.Seq - 1, Reason: "the log no longer has these events: read the state again"})...)
		}
		l.after = ev.Seq
		text = append(text, next...)
	}
	return text, sent
}

// send writes text to the client, with a deadline.
func (l *client) send(text []byte) error {
	if err := l.c.control.SetWriteDeadline(time.Now().Add(l.s.opt.Limits.StreamWrite)); err != nil {
		return err
	}
	if _, err := l.c.w.Write(text); err != nil {
		return err
	}
	return l.c.control.Flush()
}

func frameOf(id uint64, kind string, data any) []byte {
	body, err := json.Marshal(data)
	if err != nil {
		body = fmt.Appendf(nil, `{"error":%q}`, err.Error())
	}
	return fmt.Appendf(nil, "id: %d\nevent: %s\ndata: %s\n\n", id, kind, body)
}
