package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper/internal/surface/cli/command"
)

// groups is the order of the commands in help: by what people do, common ones first.
var groups = []struct{ title, commands string }{
	{"Get started", "init demo doctor"},
	{"See what is happening", "status why audit"},
	{"Run agents on the codebase", "run decide report simulate"},
	{"Lock files", "lock claim unclaim defer"},
	{"Write, undo and rescue changes", "gate undo rescue"},
	{"Queue commands", "job"},
	{"Serve the dashboard", "serve login token"},
	{"Connect interactive agents", "off mcp hook ask"},
	{"Work with other tools", "op links lease tidy"},
	{"Other commands", "config version completion help"},
}

// Help lists commands in the order in which they were added.
func init() { cobra.EnableCommandSorting = false }

// addGrouped adds commands to the root by group.
func addGrouped(root *cobra.Command, all []*cobra.Command) {
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
		for name := range strings.FieldsSeq(g.commands) {
			i := slices.IndexFunc(all, func(cmd *cobra.Command) bool { return cmd.Name() == name })
			if i < 0 { // cobra adds help and completion
				continue
			}
			all[i].GroupID = g.title
			root.AddCommand(all[i])
			all = slices.Delete(all, i, i+1)
		}
	}
	other := groups[len(groups)-1].title
	root.SetHelpCommandGroupID(other)
	root.SetCompletionCommandGroupID(other)
	root.AddCommand(all...)
}

// helpCommand shows help for a command or a topic, and refuses unknown ones.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND | TOPIC]",
		Short: "Show help for a command or a topic",
		Example: `  lockkeeper help lock acquire
  lockkeeper help exit-codes`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			about, _, err := cmd.Root().Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, sub := range about.Commands() {
				if sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
					names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return command.Subcommand(about, rest)
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// exitCodesTopic returns the help topic with the table of exit codes.
func exitCodesTopic() *cobra.Command {
	var b strings.Builder
	b.WriteString("Lockkeeper ends with one of these exit codes:\n\n")
	for _, exit := range command.Exits() {
		fmt.Fprintf(&b, "  %-6s %s\n", exit.Code, exit.Meaning)
	}
	b.WriteString("\nlock exec and the other commands that run a command return its exit code.\n" +
		"With --json, the error has its class in the field \"error\".")
	return &cobra.Command{Use: "exit-codes", Short: "Explain the exit codes", Long: b.String()}
}
