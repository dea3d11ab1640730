package inspect

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/feed"
	"lockkeeper/internal/surface/view"
)

// showPeople prints the open sessions and the open decisions, if any, and returns the next step.
func (p *program) showPeople(s *view.Status) (next string) {
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
		fmt.Fprintln(p.Out, paint(term.Yellow, "needs you: "+needsText(s.Open)))
		next = "lockkeeper decide"
	}
	return next
}

// needsText counts open decisions by kind.
func needsText(open []view.OpenDecision) string {
	count := map[string]int{}
	var kinds []string
	for _, g := range open {
		kind := string(g.Ref.Kind)
		if count[kind]++; count[kind] == 1 {
			kinds = append(kinds, kind)
		}
	}
	for i, kind := range kinds {
		kinds[i] = term.Counted(count[kind], kind)
	}
	return strings.Join(kinds, ", ")
}

func sessionTable(list []view.OpenSession, now time.Time, paths int) *term.Table {
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
		s, err := p.status(ctx, a)
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
