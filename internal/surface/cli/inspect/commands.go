package inspect

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/doctor"
	"lockkeeper/internal/surface/view"
)

type program struct{ *command.Program }

func Commands(core *command.Program) []*cobra.Command {
	p := &program{core}
	return []*cobra.Command{p.statusCommand(), p.topCommand(), p.whyCommand(), p.auditCommand(), p.configCommand(), p.doctorCommand()}
}

func (p *program) configCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "config",
		Short: "Show every setting and where it comes from",
		Long: `Show every setting, its source and its allowed values. The sources, in rising precedence,
are the default, a line of lockkeeper.yaml, an environment variable and a flag.
Passwords are hidden.`,
		Example: `  lockkeeper config
  LOCK_TIMEOUT=60 lockkeeper config --json`,
		RunE: func(*cobra.Command, []string) error {
			c, err := project.LoadConfig(p.Settings())
			if err != nil {
				return err
			}
			return p.Show(c.Values(), func() {
				t := &term.Table{Heads: []string{"KEY", "VALUE", "FROM", "ALLOWED"}, Wide: 1}
				for _, v := range c.Values() {
					t.Add(v.Key, term.Clean(v.Value), term.Clean(v.Source), v.Allowed)
				}
				t.Print(p.Out, p.Painter(p.Out))
			})
		},
	}
}

func (p *program) doctorCommand() *cobra.Command {
	var untried bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Test what is enforced here and how to improve it",
		Long: `Test this machine and this codebase. For each writer and each way to write, doctor
reports one of three levels: enforced (the write is impossible), detected (it is noticed
afterwards) or advisory (nothing prevents it). It also says how to improve that. It
proves "enforced" by trying: a forbidden write through the gate, from a sandbox, and by
the installed hook of each agent. It also checks the store, the clock, the file system,
versions, leftovers, and sessions that do not report. If a test command is configured,
it runs once, on the unchanged tree and in the sandbox of a run, for at most two minutes.

The exit code is 1 if something that should be enforced is not.`,
		Example: `  lockkeeper doctor
  lockkeeper doctor --json | jq -r '.ways[] | select(.broken) | .fact'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := doctor.Examine(cmd.Context(), p.Settings())
			if err != nil {
				return err
			}
			if !untried {
				err := p.WhileTesting(cmd.Context(), func(ctx context.Context, began func([]string)) error {
					return r.TryTests(ctx, p.Settings(), p.Env, began)
				})
				if err != nil {
					return err
				}
			}
			if err = p.Show(r, func() { p.showReport(r) }); err == nil && !r.OK {
				err = &command.ExitError{Code: command.ExitFailed}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&untried, "no-tests", false, "do not run the test command")
	return cmd
}

func (p *program) showReport(r *doctor.Report) {
	paint := p.Painter(p.Out)
	fmt.Fprintf(p.Out, "%s\n", paint(term.Bold, term.Clean(r.Root)))
	for _, w := range r.Protections {
		level, color := w.Level, map[string]string{view.Enforced: term.Green, view.Detected: term.Yellow, view.Advisory: term.Dim}[w.Level]
		if w.Broken {
			level, color = "BROKEN", term.Red
		}
		fmt.Fprintf(p.Out, "%s  %s: %s\n", paint(color, fmt.Sprintf("%-8s", level)), term.Clean(w.Name), term.Clean(lockkeeper.LocalTimes(w.Fact)))
		p.showNext(w.Next)
	}
	for _, c := range r.Checks {
		mark, color := "ok", term.Green
		if !c.OK {
			mark, color = "check", term.Yellow
		}
		fmt.Fprintf(p.Out, "%s  %s: %s\n", paint(color, fmt.Sprintf("%-8s", mark)), c.Name, term.Clean(lockkeeper.LocalTimes(c.Fact)))
		p.showNext(c.Next)
	}
	fmt.Fprintln(p.Out, term.Clean(r.Summary))
}

// showNext prints the next step below a line.
func (p *program) showNext(next string) {
	if next != "" {
		fmt.Fprintf(p.Out, "          next: %s\n", term.Clean(next))
	}
}
