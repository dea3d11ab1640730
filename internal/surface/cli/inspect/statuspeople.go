package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
)

// people is who is at work interactively, and what waits for a person.
type people struct {
	Sessions []sitting      `json:"sessions"`
	Pause    *session.Pause `json:"off,omitempty"` // the checks of sessions are off
	Needs    int            `json:"needs_you"`     // how much a flow asks people
	needs    string         // in words
}

// sitting is a session and the paths that it holds.
type sitting struct {
	session.Info
	Holds []string `json:"holds"`
}

// gatherPeople adds who is at work. What they hold is among what was gathered before.
func (s *status) gatherPeople(ctx context.Context, a *project.Project) error {
	registry := session.Open(a)
	live, err := registry.Live(ctx)
	if err != nil {
		return err
	}
	s.Sessions = []sitting{}
	for _, one := range live {
		it := sitting{Info: one, Holds: []string{}}
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

// gatherNeeds adds what the flow under way, or the last one, asks people.
func (s *status) gatherNeeds(ctx context.Context, a *project.Project) error {
	if run, err := conduct.CurrentRun(a); err != nil || run == nil {
		return err
	}
	q, err := view.New(a).Queue(ctx, "")
	if err != nil {
		return err
	}
	s.Needs = len(q.Gates)
	count := map[string]int{}
	var kinds []string
	for _, g := range q.Gates {
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

// showPeople tells who is at work and what waits for a person, and returns the next step;
// of nobody and nothing it says nothing.
func (p *program) showPeople(s *status) (next string) {
	paint := p.Painter(p.Out)
	if s.Pause != nil {
		fmt.Fprintln(p.Out, paint(term.Red, fmt.Sprintf("off: %s switched the checks of interactive agents off until %s", term.Clean(s.Pause.By), term.Stamp(s.Pause.Until))))
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

func sessionTable(list []sitting, now time.Time, paths int) *term.Table {
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
