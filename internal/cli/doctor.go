package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"lockkeeper/internal/doctor"
	"lockkeeper/internal/view"
)

func (p *program) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Prove what is enforced here, and say how to improve it",
		Long: `Examine this machine and this codebase: for each way to write, and each writer, say
whether it is enforced (it cannot be done), detected (it is seen afterwards) or
advisory (nothing keeps anybody from it), and how to improve that. What is called
enforced is tried: a forbidden write through the gate, out of a sandbox, and by the
installed hook of each agent. Store, clock, file system, versions, leftovers and
sessions that have not reported are looked at, too.

The exit code is 1 when something that is meant to be enforced is not.`,
		Example: `  lockkeeper doctor
  lockkeeper doctor --json | jq -r '.ways[] | select(.broken) | .fact'`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := doctor.Examine(cmd.Context(), p.settings())
			if err != nil {
				return err
			}
			if p.json {
				err = p.printJSON(r)
			} else {
				p.showReport(r)
			}
			if err == nil && !r.OK {
				err = &codedError{exit: exitFailed}
			}
			return err
		},
	}
}

func (p *program) showReport(r *doctor.Report) {
	paint := p.painter(p.Out)
	fmt.Fprintf(p.Out, "%s\n", paint(bold, clean(r.Root)))
	for _, w := range r.Ways {
		level, colour := w.Level, map[string]string{view.Enforced: green, view.Detected: yellow, view.Advisory: dim}[w.Level]
		if w.Broken {
			level, colour = "BROKEN", red
		}
		fmt.Fprintf(p.Out, "%s  %s: %s\n", paint(colour, fmt.Sprintf("%-8s", level)), clean(w.Name), clean(w.Fact))
		p.showNext(w.Next)
	}
	for _, c := range r.Checks {
		mark, colour := "ok", green
		if !c.OK {
			mark, colour = "look", yellow
		}
		fmt.Fprintf(p.Out, "%s  %s: %s\n", paint(colour, fmt.Sprintf("%-8s", mark)), c.Name, clean(c.Fact))
		p.showNext(c.Next)
	}
	fmt.Fprintln(p.Out, clean(r.Summary))
}

// showNext says how something gets better, below it.
func (p *program) showNext(next string) {
	if next != "" {
		fmt.Fprintf(p.Out, "          next: %s\n", clean(next))
	}
}
