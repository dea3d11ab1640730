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

// shortLimit is how many grants --short reads, because a shell prompt must be fast.
const shortLimit = 500

// headcount is the answer of --short. It does not count grants of processes that are gone,
// because they block no request.
type headcount struct {
	Sessions int  `json:"sessions"` // open
	Held     int  `json:"held"`
	Waiting  int  `json:"waiting"`
	Stale    int  `json:"stale"`
	More     bool `json:"more"` // there are more grants than shortLimit
	Off      bool `json:"off"`
}

// short prints one line, or nothing outside of a root and if there are no sessions and grants.
// To be fast it reads at most shortLimit grants and recovers nothing.
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
	err = a.Store.View(ctx, func(r store.Reader) error {
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
