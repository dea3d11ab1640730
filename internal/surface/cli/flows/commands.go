package flows

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/agent/supervisor"
	"lockkeeper/internal/surface/cli/command"
)

type program struct{ *command.Program }

func Commands(core *command.Program) []*cobra.Command {
	p := &program{core}
	return []*cobra.Command{p.runCommand(), p.decideCommand(), p.reportCommand(), p.simulateCommand(), p.askCommand()}
}

func (p *program) askCommand() *cobra.Command {
	var why string
	cmd := &cobra.Command{
		Use:   "ask [PATH]",
		Short: "Ask what this task may write, or ask for another file (for agents)",
		Long: `For an agent, or its tool, that works under "lockkeeper run". Without a path, print what
its grant covers. With a path, report that the task also needs this file. That does not
extend the grant: a person sees it as a gap, and can make it a task.`,
		Example: `  lockkeeper ask
  lockkeeper ask app/models/user.rb --why "the validation belongs there"`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, inside := supervisor.FromEnviron(p.getenv)
			if !inside {
				return &lockkeeper.InputError{Field: "supervisor", Reason: "this is not the workspace of a running agent", Next: "lockkeeper status, which shows who holds what"}
			}
			if len(args) == 1 {
				if strings.TrimSpace(why) == "" {
					return command.Usage(cmd, "needs a reason, with --why")
				}
				if err := client.Gap(cmd.Context(), args[0], why); err != nil {
					return err
				}
				_, err := fmt.Fprintf(p.Out, "noted: %s. It is not in your grant: continue without it, and do not write it.\n", args[0])
				return err
			}
			view, err := client.Grant(cmd.Context())
			switch {
			case err != nil:
				return err
			case p.JSON:
				return p.PrintJSON(view)
			}
			for _, path := range view.Write {
				fmt.Fprintln(p.Out, "write", path)
			}
			for _, path := range view.Read {
				fmt.Fprintln(p.Out, "read ", path)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&why, "why", "", "why you need the file")
	return cmd
}

func (p *program) getenv(name string) string {
	value, _ := p.Lookup(name)
	return value
}
