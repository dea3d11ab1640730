package cli

import (
	"github.com/spf13/cobra"

	"lockkeeper/internal/hook"
)

func (p *program) hookCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "hook AGENT",
		Short: "Answer a hook of an interactive agent",
		Long: `Answer a hook of an interactive agent, which is claude-code, codex or gemini: it
reads the agent's call from standard input. Before a write the file is claimed
for the session, or the write is refused with exit code 2 and the reason; after a
command what others hold is compared; at the end of a turn everything is given
back. Whatever goes wrong before a write refuses it.

Agents run it; lockkeeper init sets that up.`,
		Example: `  lockkeeper hook claude-code <call.json`,
		Args:    exactly(1, "the agent: claude-code, codex or gemini"),
		RunE: func(cmd *cobra.Command, args []string) error {
			code := hook.Main(args[0], hook.World{In: p.In, Out: p.Out, Err: p.Err, Env: p.lookup, Store: p.store})
			if code == exitOK {
				return nil
			}
			return &codedError{exit: code}
		},
	}
}
