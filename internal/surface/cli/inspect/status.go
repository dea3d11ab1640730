package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/jobs"
	"lockkeeper/internal/surface/cli/landings"
	"lockkeeper/internal/surface/cli/locks"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
)

// holdersShown is how many holders status names per request on a terminal.
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
  needs you   decisions of a run; see lockkeeper decide

--watch updates the view whenever something changes. --short prints one line for a shell
prompt with the numbers of sessions, held and waiting grants, or nothing if there are none.`,
		Example: `  lockkeeper status
  lockkeeper status --watch
  PS1='$(lockkeeper status --short)\$ '
  lockkeeper status --json | jq '.held[].write_paths'`,
		Args: command.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case short && watch:
				return command.Usage(cmd, "--short and --watch exclude each other")
			case short:
				return p.short(cmd.Context())
			}
			return p.With(cmd.Context(), func(a *project.Project) error {
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
				if p.JSON {
					return p.PrintJSON(s)
				}
				return p.showStatus(s)
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
		fmt.Fprintf(p.Err, "note: cannot read %s\n", term.Clean(problem))
	}
	return s, nil
}

func (p *program) showStatus(s *view.Status) error {
	asked := p.showPeople(s)
	if len(s.Held)+len(s.Stale)+len(s.Gone)+len(s.Waiting) == 0 {
		fmt.Fprintf(p.Out, "nothing is locked in %s, and no request waits\n", term.Clean(s.Root))
		next := p.showRescued(s)
		queue := jobs.ShowQueue(p.Program, s)
		p.Advise(cmp.Or(asked, next, queue, "lockkeeper init claude (or codex, gemini) for interactive agents; lockkeeper run --plan FILE for a plan of tasks; lockkeeper lock exec --write PATH -- COMMAND; or lockkeeper job submit --write PATH -- COMMAND"))
		return nil
	}
	paint := p.Painter(p.Out)
	now := p.Now()
	next := ""
	if len(s.Held) > 0 {
		fmt.Fprintf(p.Out, "%s\n", paint(term.Bold, fmt.Sprintf("held: %s", term.Counted(len(s.Held), "grant"))))
		locks.Holdings(s.Held, now, term.Few(p.Out, locks.PathsShown)).Print(p.Out, paint)
	}
	if len(s.Stale) > 0 {
		fmt.Fprintf(p.Out, "%s\n", paint(term.Yellow, fmt.Sprintf("stale: %s (STALE), lease expired and still held", term.Counted(len(s.Stale), "grant"))))
		locks.Holdings(s.Stale, now, term.Few(p.Out, locks.PathsShown)).Print(p.Out, paint)
		next = "lockkeeper why GRANT, then lockkeeper lock force-release GRANT or lockkeeper lock clear"
	}
	if len(s.Gone) > 0 {
		fmt.Fprintf(p.Out, "%s\n", paint(term.Bold, fmt.Sprintf("gone: %s whose process is gone, released by the next request", term.Counted(len(s.Gone), "grant"))))
		locks.Holdings(s.Gone, now, term.Few(p.Out, locks.PathsShown)).Print(p.Out, paint)
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
	p.Advise(cmp.Or(asked, next, rescued, queue))
	return nil
}

// gapsShown is how many kept changes of each kind status shows.
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
