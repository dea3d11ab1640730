package inspect

import (
	"fmt"

	"github.com/spf13/cobra"

	"lockkeeper/internal/job"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/jobs"
	"lockkeeper/internal/surface/cli/locks"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
)

func (p *program) whyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "why PATH | RESOURCE | HOLDER | GRANT | ITEM | TASK | UNIT",
		Short: "Explain why a path is locked or a request waits",
		Long: `Explain the state of one thing, with the latest events about it:

  a path or resource  who holds it, and who waits for it in which order
  a holder            what it holds, what it waits for, and who blocks it
  a grant             everything known about it
  an item             what it waits for, who blocks it and when it may start;
                      where it runs; or why it failed
  a task or batch     the same, also before it is queued
  a unit              its phase, and the state of its batches

A name is tried in this order: the id of a grant or of an item such as j12, a holder, an
existing path, the key or name of an item, a resource, a path that is locked or has
events, the start of a grant's id, a unit, batch or task of the last run. Any other name
is an error.`,
		Example: `  lockkeeper why app/user.rb
  lockkeeper why j12
  lockkeeper why otter
  lockkeeper why Chapter_03
  lockkeeper why rate-limit
  lockkeeper why 1b4e28ba`,
		Args: command.Exactly(1, "one path, resource, holder, grant, item, task or unit"),
		RunE: p.OnQueue(func(cmd *cobra.Command, a *project.Project, q *job.Queue, args []string) error {
			it, err := jobs.ItemNamed(cmd.Context(), p.Program, a, q, args[0])
			if err != nil {
				return err
			}
			if it != nil {
				return jobs.WhyItem(cmd.Context(), p.Program, a, q, it.ID)
			}
			answer, err := view.New(a).Why(cmd.Context(), args[0], p.Exists(args[0]))
			if err != nil {
				return err
			}
			if answer.IsUnknown() {
				return p.whyWork(cmd.Context(), a, q, args[0])
			}
			return p.Show(answer, func() { p.showWhy(answer) })
		}),
	}
}

func (p *program) showWhy(r *view.Why) {
	name := term.Clean(r.Name)
	switch {
	case len(r.Held)+len(r.Waiting) > 0:
	case len(r.Queued) > 0:
		fmt.Fprintf(p.Out, "%s is not locked, and %s it\n", name, term.Plural(len(r.Queued), "a queued item wants", "queued items want"))
	case r.About == "path" && r.Missing:
		fmt.Fprintf(p.Out, "%s is free, and no such file exists now\n", name)
	case r.About == "path", r.About == "resource":
		fmt.Fprintf(p.Out, "%s is free: no holder has it or waits for it\n", name)
	case r.About == "holder":
		fmt.Fprintf(p.Out, "%s holds nothing and waits for nothing\n", name)
	default:
		fmt.Fprintf(p.Out, "grant %s is not held here: it was released, has expired, or never existed\n", name)
	}
	for _, s := range r.Held {
		locks.Show(p.Program, p.Out, s)
	}
	for i, s := range r.Waiting {
		if r.About == "path" || r.About == "resource" {
			fmt.Fprintf(p.Out, "%d. ", i+1)
		}
		locks.Show(p.Program, p.Out, s)
	}
	for _, it := range r.Queued[:min(len(r.Queued), term.Few(p.Out, locks.PathsShown))] {
		fmt.Fprintf(p.Out, "queued: %s (%s) %s, %s, wants %s\n", it.ID, jobs.Title(it), term.Clean(it.Phase), jobs.StateOf(it), jobs.LockList(it.Locks))
	}
	if more := len(r.Queued) - term.Few(p.Out, locks.PathsShown); more > 0 {
		fmt.Fprintf(p.Out, "queued: and %d more\n", more)
	}
	if len(r.Lines) > 0 {
		fmt.Fprintln(p.Out, p.Painter(p.Out)(term.Bold, "recently:"))
		for _, line := range r.Lines {
			fmt.Fprintln(p.Out, "  "+lineText(line))
		}
	}
}
