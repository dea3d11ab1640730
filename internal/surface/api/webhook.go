package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"lockkeeper/internal/surface/feed"
	"lockkeeper/internal/surface/view"
)

// These constants are the delays and timeouts of the webhook.
const (
	hookPause    = 5 * time.Second // pause before a check, so that one call covers related events
	hookEvery    = time.Minute     // minimum between two calls
	hookTimeout  = 10 * time.Second
	hookAttempts = 6
)

// needed is the body of a webhook call: that a decision is open, without its content.
type needed struct {
	Text    string         `json:"text"` // a sentence for chat services
	Root    string         `json:"codebase"`
	Total   int            `json:"total"`
	Kinds   map[string]int `json:"kinds"`
	Address string         `json:"address"` // URL of the dashboard
	Seq     uint64         `json:"seq"`
}

type webhook struct {
	s      *Server
	url    string
	client *http.Client
	pause  time.Duration
	every  time.Duration
	retry  time.Duration // wait before the second attempt; doubles before each later one
}

func newWebhook(s *Server, address string) *webhook {
	return &webhook{s: s, url: address, pause: hookPause, every: hookEvery, retry: time.Second, client: &http.Client{
		Timeout:       hookTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the webhook calls only the URL that the operator set
	}}
}

// follow checks after events whether more decisions are open than it last reported, until ctx ends. Decisions
// are stored in documents, and every writer of a document also ends an item, which is an event.
func (h *webhook) follow(ctx context.Context, f *feed.Feed) {
	told := 0
	for after := f.Last(); ; {
		now, err := h.s.opt.View.Now(ctx, after)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			h.trouble(err)
		case now.Needs.Total > told:
			if err := h.tell(ctx, now); err != nil {
				h.trouble(err)
			} else {
				told = now.Needs.Total
			}
			if !sleep(ctx, h.every) {
				return
			}
		default:
			told = now.Needs.Total // fewer decisions are open, so report the next increase
		}
		events, err := f.Next(ctx, after)
		if errors.Is(err, feed.ErrClosed) || ctx.Err() != nil {
			return
		}
		if err != nil {
			h.trouble(err)
		}
		if len(events) > 0 {
			after = events[len(events)-1].Seq
		}
		if !sleep(ctx, h.pause) {
			return
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// trouble logs an error without the URL, which may contain a secret.
func (h *webhook) trouble(err error) {
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err
	}
	h.s.opt.Log.Warn("cannot call the webhook", "error", err)
}

// tell calls the webhook, with retries, until it succeeds or the attempts are used up.
func (h *webhook) tell(ctx context.Context, now *view.Now) (err error) {
	body, err := json.Marshal(h.news(now))
	if err != nil {
		return err
	}
	wait := h.retry
	for attempt := range hookAttempts {
		if attempt > 0 && !sleep(ctx, wait) {
			return context.Cause(ctx)
		}
		if attempt > 0 {
			wait *= 2
		}
		var final bool
		if final, err = h.post(ctx, body); err == nil || final {
			return err
		}
	}
	return err
}

// post calls the webhook once. If final is true, a retry would fail the same way.
func (h *webhook) post(ctx context.Context, body []byte) (final bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil {
		return true, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "lockkeeper")
	answer, err := h.client.Do(req)
	if err != nil {
		return false, err
	}
	if err := answer.Body.Close(); err != nil {
		return false, err
	}
	if answer.StatusCode/100 == 2 {
		return true, nil
	}
	again := answer.StatusCode >= 500 || answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode == http.StatusRequestTimeout
	return !again, fmt.Errorf("the webhook answered %s", answer.Status)
}

func (h *webhook) news(now *view.Now) needed {
	n := needed{Root: filepath.Base(h.s.opt.App.Root.Dir()), Total: now.Needs.Total, Kinds: map[string]int{}, Address: h.s.Address(), Seq: now.Seq}
	var parts []string
	for _, k := range now.Needs.Kinds {
		n.Kinds[string(k.Kind)] = k.Count
		parts = append(parts, fmt.Sprintf("%d %s", k.Count, k.Kind))
	}
	n.Text = fmt.Sprintf("Lockkeeper: open decisions in %s: %d (%s)", n.Root, n.Total, strings.Join(parts, ", "))
	return n
}
