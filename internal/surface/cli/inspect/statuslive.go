package inspect

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/feed"
	"lockkeeper/internal/surface/view"
)

// people holds the open sessions, and the number of open decisions.
type people struct {
	Sessions []openSession  `json:"sessions"`
	Pause    *session.Pause `json:"off,omitempty"` // write checks are off
	Needs    int            `json:"needs_you"`     // open decisions of a run
	needs    string         // Needs in words
}

// openSession is a session and the paths that it holds.
type openSession struct {
	session.Info
	Holds []string `json:"holds"`
}

// gatherPeople adds the open sessions. It needs the grants of the status.
func (s *status) gatherPeople(ctx context.Context, a *project.Project) error {
	registry := session.Open(a)
	live, err := registry.Live(ctx)
	if err != nil {
		return err
	}
	s.Sessions = []openSession{}
	for _, one := range live {
		it := openSession{Info: one, Holds: []string{}}
		for _, h := range s.Held {
			if h.ID == one.GrantID && one.GrantID != "" {
				it.Holds = append(it.Holds, h.WritePaths...)
			}
		}
		s.Sessions = append(s.Sessions, it)
	}
	s.Pause, err = registry.Off(ctx)
	return err
}

// gatherNeeds adds the open decisions of the current or last run.
func (s *status) gatherNeeds(ctx context.Context, a *project.Project) error {
	if run, err := conduct.CurrentRun(a); err != nil || run == nil {
		return err
	}
	q, err := view.New(a).Decisions(ctx, "")
	if err != nil {
		return err
	}
	s.Needs = len(q.Open)
	count := map[string]int{}
	var kinds []string
	for _, g := range q.Open {
		kind := string(g.Ref.Kind)
		if count[kind]++; !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	for i, kind := range kinds {
		kinds[i] = term.Counted(count[kind], kind)
	}
	s.needs = strings.Join(kinds, ", ")
	return nil
}

// showPeople prints the open sessions and the open decisions, if any, and returns the next step.
func (p *program) showPeople(s *status) (next string) {
	paint := p.Painter(p.Out)
	if s.Pause != nil {
		fmt.Fprintln(p.Out, paint(term.Red, fmt.Sprintf("off: %s disabled write checks of interactive agents until %s", term.Clean(s.Pause.By), term.Stamp(s.Pause.Until))))
		next = "lockkeeper off --end"
	}
	if len(s.Sessions) > 0 {
		fmt.Fprintln(p.Out, paint(term.Bold, "at work: "+term.Counted(len(s.Sessions), "session")))
		sessionTable(s.Sessions, p.Now(), term.Few(p.Out, holdersShown)).Print(p.Out, paint)
	}
	if s.Needs > 0 {
		fmt.Fprintln(p.Out, paint(term.Yellow, "needs you: "+s.needs))
		next = "lockkeeper decide"
	}
	return next
}

func sessionTable(list []openSession, now time.Time, paths int) *term.Table {
	t := &term.Table{Heads: []string{"WHO", "AGENT", "WHERE", "HOLDS", "SEEN", "ABOUT"}, Wide: 5, Also: 3, Sentences: true}
	for _, s := range list {
		holds := "nothing"
		if n := len(s.Holds); n > 0 {
			holds = term.Clean(strings.Join(s.Holds[:min(n, paths)], ", "))
			if n > paths {
				holds += fmt.Sprintf(" and %d more", n-paths)
			}
		}
		t.Add(term.Clean(s.Callsign), term.Clean(s.Agent), term.Clean(cmp.Or(s.TTY, "-")), holds, term.Span(now.Sub(s.Seen))+" ago", term.Clean(s.About))
	}
	return t
}

// watchStatus shows the status after every change: the whole on a terminal, and a line with
// --json if it differs.
func (p *program) watchStatus(ctx context.Context, a *project.Project) error {
	said := ""
	open := func(ctx context.Context) (*feed.Feed, error) { return feed.Open(ctx, a.Store, feed.Options{}) }
	return command.Follow(ctx, open, func(ctx context.Context) error {
		s, err := p.gatherAll(ctx, a)
		if err != nil {
			return err
		}
		if p.JSON {
			line, err := json.Marshal(s)
			if err != nil || string(line) == said {
				return err
			}
			said = string(line)
			_, err = fmt.Fprintln(p.Out, said)
			return err
		}
		if p.HandlesEscapes(p.Out) {
			fmt.Fprint(p.Out, term.ClearScreen)
		} else {
			fmt.Fprintln(p.Out, term.Stamp(p.Now()))
		}
		if err := p.showStatus(s); err != nil {
			return err
		}
		return p.Out.Err
	})
}
