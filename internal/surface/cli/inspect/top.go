package inspect

import (
	"context"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/top"
)

func (p *program) topCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "top",
		Short: "Watch the run, the queue and the locks on a full screen",
		Long: `Show what the dashboard shows first, as a full screen in a terminal: what each slot does
with the last line of its output, how far the run is and when it ends, open decisions,
stuck work, and failures by cause. It also shows a run of another process or machine, and
updates itself.

Enter opens what is selected: an item with its log, which it follows, a decision, a cause
of failures, or a kept change. Decisions are answered and failures retried on the screen,
after a confirmation. Pages and answers have the keys of the dashboard:

  j k        next and previous row     g n  Now       g w  Work
  Enter Esc  open and close            g d  Decide    g l  Locks
  /          find                      g b  Board     g e  Rescue
  ?          all keys that apply now   q    close the screen

lockkeeper run shows the same screen while it runs. Closing the screen stops nothing.`,
		Example: `  lockkeeper top
  ssh build-host -t lockkeeper --dir /srv/shop top
  lockkeeper run --plain`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if p.JSON {
				return command.Usage(cmd, "is for people at a terminal; for programs there is lockkeeper status --watch --json")
			}
			if !top.Fits(p.IO) {
				return &lockkeeper.RefusedError{Act: "top", Reason: "it needs a terminal that obeys escape sequences, in the foreground", Next: "lockkeeper status --watch"}
			}
			return p.With(cmd.Context(), func(a *project.Project) error { return p.show(cmd.Context(), a, "n") })
		},
	}
}

// show shows the screen until the person closes it.
func (p *program) show(ctx context.Context, a *project.Project, page string) error {
	ctx, stop := command.Interruptible(ctx)
	defer stop()
	if err := top.Show(ctx, top.Options{IO: p.IO, Project: a, By: p.Person(), Refuse: p.NoAgent, Page: page}); err != nil {
		return err
	}
	return command.WatchEnd(ctx, nil)
}
