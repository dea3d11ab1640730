package agents

import (
	"github.com/spf13/cobra"

	"lockkeeper/internal/project"
	"lockkeeper/internal/session/hook"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/mcp"
	"lockkeeper/internal/surface/view"
)

// program is one call of the program. The commands of this package are its methods.
type program struct{ *command.Program }

// Commands returns the commands of this package.
func Commands(core *command.Program) []*cobra.Command {
	p := &program{core}
	return []*cobra.Command{p.initCommand(), p.hookCommand(), p.mcpCommand(), p.offCommand()}
}

func (p *program) hookCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "hook AGENT",
		Short: "Answer a hook of an interactive agent",
		Long: `Answer a hook of an interactive agent: claude-code, codex or gemini. It reads the agent's
call from standard input. Before a write it locks the file for the session, or refuses
the write with a reason: as JSON in the form of the agent, or with exit code 2. After a command it checks the files that others
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

func (p *program) mcpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "mcp",
		Short: "Serve the Model Context Protocol to an agent",
		Long: `Serve the Model Context Protocol to an agent over standard input and output. The agent
can inspect the locks, claim files, write them through the gate, defer changes, and ask for more
files. It acts for the session that started it, the same as that session's hooks. Its
claims are released when the agent ends. Outside of a codebase with locks it has no
tools.

Agents start this command; lockkeeper init sets that up. For agents on other machines,
lockkeeper serve has the same protocol at /mcp, for tokens of the role agent.`,
		Example: `  claude mcp add lockkeeper -- lockkeeper mcp`,
		Args:    command.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := command.Interruptible(cmd.Context())
			defer stop()
			if root, err := project.RootOf(p.Base()+"/.", p.Lookup); err != nil {
				return err
			} else if root == "" { // not a failure: agents start it in every directory
				return mcp.ServeNowhere(ctx, project.Version(), p.In, p.IO.Out)
			}
			return p.WithSettings(ctx, p.ForOthers(), func(a *project.Project) error {
				return mcp.New(mcp.Options{App: a, View: view.New(a), Version: project.Version()}).Serve(ctx, p.In, p.IO.Out)
			})
		},
	}
}
