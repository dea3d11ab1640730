package agents

import (
	"github.com/spf13/cobra"

	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/mcp"
	"lockkeeper/internal/surface/view"
)

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
