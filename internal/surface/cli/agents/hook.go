package agents

import (
	"github.com/spf13/cobra"

	"lockkeeper/internal/session/hook"
	"lockkeeper/internal/surface/cli/command"
)

func (p *program) hookCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "hook AGENT",
		Short: "Answer a hook of an interactive agent",
		Long: `Answer a hook of an interactive agent: claude-code, codex or gemini. It reads the agent's
call from standard input. Before a write it locks the file for the session, or refuses
the write with exit code 2 and a reason. After a command it checks the files that others
hold. At the end of a turn it releases everything. An error before a write refuses it.

Agents run this command; lockkeeper init sets that up.`,
		Example: `  lockkeeper hook claude-code <call.json`,
		Args:    command.Exactly(1, "the agent: claude-code, codex or gemini"),
		RunE: func(cmd *cobra.Command, args []string) error {
			code := hook.Main(args[0], hook.World{In: p.In, Out: p.Out, Err: p.Err, Env: p.Lookup, Store: p.Store})
			if code == command.ExitOK {
				return nil
			}
			return &command.ExitError{Code: code}
		},
	}
}
