package inspect

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/jobs"
	"lockkeeper/internal/surface/cli/landings"
	"lockkeeper/internal/surface/cli/locks"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/cli/top"
	"lockkeeper/internal/surface/feed"
	"lockkeeper/internal/surface/view"
)

const holdersShown = 3

func (p *program) statusCommand() *cobra.Command {
	var watch, short bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show who is working, who holds what, and who waits for whom",
		Long: `Show the interactive agents with their terminals, who holds which paths since when and
until when, and who waits for whom. Then:

  (STALE)     the lease has expired, and a person must decide
  gone        the process has ended; the next request for its paths releases the grant
  (landing)   changes under the grant are being written
  (revoking)  the grant was force-released, and ends when its landing is done
  gaps        writes that were refused, or made without a lock; see lockkeeper rescue
  displaced   edits that others replaced; see lockkeeper rescue
  queue       queued and running items; see lockkeeper job list
  error       why the run ended early; lockkeeper run continues it
  needs you   decisions of a run; see lockkeeper decide

--watch updates the view whenever something changes. On a terminal it opens the page Locks
of lockkeeper top. --short prints one line for a shell prompt with the numbers of sessions,
held and waiting grants, or nothing if there are none.`,
		Example: `  lockkeeper status
  lockkeeper status --watch
  PS1='$(lockkeeper status --short)\$ '
  lockkeeper status --json | jq '.held[].write_paths'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case short && watch:
				return command.Usage(cmd, "--short and --watch exclude each other")
			case short:
				return p.short(cmd.Context())
			}
			return p.With(cmd.Context(), func(a *project.Project) error {
				if watch && !p.JSON && top.Fits(p.IO) {
					return p.show(cmd.Context(), a, "l")
				}
				if watch {
					return p.watchStatus(cmd.Context(), a)
				}
				s, err := p.status(cmd.Context(), a)
				if err != nil {
					return err
				}
				live := map[string]bool{}
				for _, h := range slices.Concat(s.Held, s.Stale, s.Gone, s.Waiting) {
					live[h.ID] = true
				}
				a.Tokens.Sweep(func(id string) bool { return live[id] })
				return p.Show(s, func() { p.showStatus(s) })
			})
		},
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "update the view whenever something changes")
	cmd.Flags().BoolVar(&short, "short", false, "print one line for a shell prompt")
	return cmd
}

// status reads the status, and prints what could not be read.
func (p *program) status(ctx context.Context, a *project.Project) (*view.Status, error) {
	s, err := view.New(a).Status(ctx)
	if err != nil {
		return nil, err
	}
	for _, problem := range s.Problems {
		p.Note("cannot read %s", term.Clean(problem))
	}
	return s, nil
}

func (p *program) showStatus(s *view.Status) {
	asked := p.showPeople(s)
	idle := ""
	if len(s.Held)+len(s.Stale)+len(s.Gone)+len(s.Waiting) == 0 {
		fmt.Fprintf(p.Out, "nothing is locked in %s, and no request waits\n", term.Clean(s.Root))
		idle = "lockkeeper init claude (or codex, gemini, opencode) for interactive agents; lockkeeper run --plan FILE for a plan of tasks; lockkeeper lock exec --write PATH -- COMMAND; or lockkeeper job submit --write PATH -- COMMAND"
	}
	paint := p.Painter(p.Out)
	now := p.Now()
	next := ""
	for _, group := range []struct {
		list                []view.Holding
		color, title, about string
	}{{s.Held, term.Bold, "held", ""}, {s.Stale, term.Yellow, "stale", " (STALE), lease expired and still held"}, {s.Gone, term.Bold, "gone", " whose process is gone, released by the next request"}} {
		if len(group.list) > 0 {
			fmt.Fprintln(p.Out, paint(group.color, group.title+": "+term.Counted(len(group.list), "grant")+group.about))
			locks.Holdings(group.list, now, term.Few(p.Out, locks.PathsShown)).Print(p.Out, paint)
		}
	}
	if len(s.Stale) > 0 {
		next = "lockkeeper why GRANT, then lockkeeper lock force-release GRANT or lockkeeper lock clear"
	}
	if len(s.Waiting) > 0 {
		fmt.Fprintf(p.Out, "%s\n", paint(term.Bold, fmt.Sprintf("waiting: %s, in order", term.Counted(len(s.Waiting), "request"))))
		locks.Waits(s.Waiting, now, term.Few(p.Out, locks.PathsShown), term.Few(p.Out, holdersShown)).Print(p.Out, paint)
	}
	if len(s.Unfinished) > 0 {
		fmt.Fprintln(p.Out, paint(term.Yellow, "unfinished: "+term.Counted(len(s.Unfinished), "landing")+", neither complete nor rolled back"))
		for _, l := range s.Unfinished {
			fmt.Fprintf(p.Out, "  landing %d of %s, %s\n", l.Seq, term.Clean(l.Holder), term.Counted(len(l.Changes), "file"))
		}
		next = cmp.Or(next, "lockkeeper gate recover")
	}
	rescued := p.showRescued(s)
	queue := jobs.ShowQueue(p.Program, s)
	p.Advise(cmp.Or(asked, next, rescued, queue, idle))
}

const gapsShown = 5

// showRescued prints the kept changes, and returns the next step.
func (p *program) showRescued(s *view.Status) (next string) {
	paint := p.Painter(p.Out)
	for _, group := range []struct {
		title string
		list  []view.KeptChange
	}{
		{"gaps: " + term.Counted(len(s.Gaps), "write") + " refused, or made without a lock, kept", s.Gaps},
		{"displaced: " + term.Counted(len(s.Displaced), "edit") + " replaced by " + term.Plural(len(s.Displaced), "another", "others") + ", kept", s.Displaced},
		{"uncommitted: " + term.Counted(len(s.Uncommitted), "file") + " removed or overwritten by commands of sessions, kept", s.Uncommitted},
		{"unlanded: " + term.Counted(len(s.Unlanded), "file") + " that failed to land, kept", s.Unlanded},
		{"damaged: " + term.Counted(len(s.Damaged), "kept change") + " with damaged content", s.Damaged},
	} {
		n := len(group.list)
		if n == 0 {
			continue
		}
		if n > gapsShown {
			group.title += fmt.Sprintf("; newest %d; all: lockkeeper rescue list", gapsShown)
		}
		fmt.Fprintln(p.Out, paint(term.Yellow, group.title))
		landings.Rescued(group.list[max(0, n-gapsShown):], p.Now()).Print(p.Out, paint)
		next = cmp.Or(next, "lockkeeper rescue show "+group.list[n-1].ID)
	}
	return next
}

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
	for _, u := range s.Unchecked {
		fmt.Fprintln(p.Out, paint(term.Red, "unchecked: "+term.Clean(u.String())+": it works here, and its hooks have not reported"))
		next = "lockkeeper doctor"
	}
	if r := s.Elsewhere; r != nil {
		fmt.Fprintf(p.Out, "run of the flow %s on %s, in %s, since %s; next: lockkeeper run shows it, lockkeeper run --join takes part\n", r.Flow, term.Clean(r.Name), term.Clean(r.Root), term.Stamp(r.Began))
	}
	for _, m := range s.Machines {
		fmt.Fprintln(p.Out, term.Clean(m.String()))
	}
	if s.Crash != "" {
		fmt.Fprintln(p.Out, paint(term.Red, "error: "+term.Clean(s.Crash)+"; the queue is kept; next: lockkeeper run"))
	}
	if s.Baseline != "" {
		fmt.Fprintln(p.Out, paint(term.Yellow, "the tests failed on the unchanged tree, before the run: "+term.Clean(s.Baseline)))
	}
	if s.Needs > 0 {
		fmt.Fprintln(p.Out, paint(term.Yellow, "needs you: "+needsText(s.Open)))
		next = "lockkeeper decide"
	}
	return next
}

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
		if len(s.Holds) > 0 {
			holds = term.JoinFew(s.Holds, paths, term.Clean)
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
		p.showStatus(s)
		return p.Out.Err
	})
}

// short prints one line, or nothing outside of a root and if there are no sessions and grants.
// To be fast it recovers nothing.
func (p *program) short(ctx context.Context) error {
	s := p.Settings()
	s.SkipRecovery = true
	if root, err := project.RootOf(p.Base()+"/.", p.Lookup); err != nil || root == "" {
		return err
	}
	return p.WithSettings(ctx, s, func(a *project.Project) error {
		t, err := view.New(a).Headcount(ctx)
		if err != nil {
			return err
		}
		return p.Show(t, func() {
			if line := headcountLine(t); line != "" {
				fmt.Fprintln(p.Out, line)
			}
		})
	})
}

// headcountLine returns what --short prints.
func headcountLine(t *view.Headcount) string {
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
