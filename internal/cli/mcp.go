package cli

import (
	"github.com/spf13/cobra"

	"lockkeeper/internal/app"
	"lockkeeper/internal/mcpserver"
	"lockkeeper/internal/view"
)

func (p *program) mcpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "mcp",
		Short: "Answer an agent by the Model Context Protocol",
		Long: `Answer an agent over standard input and output by the Model Context Protocol: it
can look, claim files, write them through the gate, have changes land later, and
say what else it would need. It speaks for the window of whoever started it; where
hooks are set up there, both are one session. What is claimed is given back when
the agent ends. Outside of any codebase with locks it has no tools, and says so.

Agents start it; lockkeeper init sets that up. For agents elsewhere lockkeeper serve
answers the same protocol at /mcp, to tokens of the role agent.`,
		Example: `  claude mcp add lockkeeper -- lockkeeper mcp`,
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			if root, err := app.RootOf(p.base()+"/.", p.lookup); err != nil {
				return err
			} else if root == "" { // an agent that starts it everywhere is not to be told of a failure
				return mcpserver.ServeNowhere(ctx, version(), p.In, p.IO.Out)
			}
			return p.withSettings(ctx, p.speaking(), func(a *app.App) error {
				return mcpserver.New(mcpserver.Options{App: a, Look: view.New(a), Version: version()}).Serve(ctx, p.In, p.IO.Out)
			})
		},
	}
}
