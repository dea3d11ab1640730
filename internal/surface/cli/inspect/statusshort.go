package inspect

import (
	"context"
	"fmt"
	"strings"

	"lockkeeper/internal/project"
	"lockkeeper/internal/session"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/store"
)

// shortLimit is how many grants a line for a prompt looks at: somebody waits for it with
// every command they type.
const shortLimit = 500

// headcount is what a line for a prompt says. What is held for processes that are gone is
// in nobody's way, and not counted.
type headcount struct {
	Sessions int  `json:"sessions"` // that are there
	Held     int  `json:"held"`
	Waiting  int  `json:"waiting"`
	Stale    int  `json:"stale"`
	More     bool `json:"more"` // than were counted
	Off      bool `json:"off"`
}

// short prints one line, or none where there is nothing to tell: outside of any root, and
// where nobody is there and nothing is held. It looks at no more than it can in a moment, and repairs nothing.
func (p *program) short(ctx context.Context) error {
	s := p.Settings()
	s.SkipRecovery = true
	if root, err := project.RootOf(p.Base()+"/.", p.Lookup); err != nil || root == "" {
		return err
	}
	return p.WithSettings(ctx, s, func(a *project.Project) error {
		t, err := count(ctx, a)
		if err != nil {
			return err
		}
		if p.JSON {
			return p.PrintJSON(t)
		}
		if line := t.line(); line != "" {
			fmt.Fprintln(p.Out, line)
		}
		return nil
	})
}

func count(ctx context.Context, a *project.Project) (t headcount, err error) {
	registry := session.Open(a)
	pause, err := registry.Off(ctx)
	if err != nil {
		return t, err
	}
	t.Off = pause != nil
	err = a.View(ctx, func(r store.Reader) error {
		list, more, err := a.Locks.FirstIn(r, shortLimit)
		if err != nil {
			return err
		}
		t.More = more
		for _, rec := range list {
			free, err := a.Locks.IsFree(r, rec)
			if err != nil {
				return err
			}
			switch {
			case rec.State == store.StateWaiting:
				t.Waiting++
			case t.Off && rec.ID == pause.GrantID:
			case free:
			case rec.Expires != 0 && rec.Expires <= r.Now().Lease:
				t.Stale++
			default:
				t.Held++
			}
		}
		live, err := registry.LiveAmong(list)
		t.Sessions = len(live)
		return err
	})
	return t, err
}

func (t headcount) line() string {
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	add(t.Sessions, "at work")
	add(t.Held, "held")
	add(t.Waiting, term.Plural(t.Waiting, "waits", "wait"))
	add(t.Stale, "STALE")
	if t.More {
		parts = append(parts, "and more")
	}
	if t.Off {
		parts = append(parts, "CHECKS OFF")
	}
	return strings.Join(parts, " · ")
}
