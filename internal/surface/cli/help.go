package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockkeeper/durable"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
)

// groups is the order of the commands in help: by what people do, common ones first.
var groups = []struct{ title, commands string }{
	{"Get started", "init demo doctor uninit"},
	{"See what is happening", "status top why audit"},
	{"Run agents on the codebase", "run decide report simulate"},
	{"Lock files", "lock claim unclaim defer"},
	{"Write, undo and rescue changes", "commit gate undo rescue"},
	{"Queue commands", "job"},
	{"Serve the dashboard", "serve login token"},
	{"Connect interactive agents", "off mcp lsp hook ask"},
	{"Work with other tools", "op links lease tidy"},
	{"Other commands", "config version completion help"},
}

// Help lists commands in the order in which they were added.
func init() { cobra.EnableCommandSorting = false }

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

// manCommand writes the manual pages, for packagers.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the manual pages into a directory",
		Long:    "Write the manual pages of all commands into a directory, for packages of Lockkeeper.",
		Example: "  lockkeeper man share/man/man1",
		Hidden:  true,
		Args:    command.Exactly(1, "a directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			return writePages(cmd.Context(), cmd.Root(), args[0])
		},
	}
}

func writePages(ctx context.Context, cmd *cobra.Command, dir string) error {
	if cmd.Hidden {
		return nil
	}
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	if err := durable.WriteFile(ctx, filepath.Join(dir, name+".1"), []byte(manPage(cmd)), 0o644); err != nil {
		return err
	}
	for _, sub := range cmd.Commands() {
		if err := writePages(ctx, sub, dir); err != nil {
			return err
		}
	}
	return nil
}

// manPage returns the manual page of a command, in the man macros of roff.
func manPage(cmd *cobra.Command) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	line(`.TH "%s" "1" "" "Lockkeeper %s" "Lockkeeper Manual"`, strings.ToUpper(roff(name)), roff(project.Built().Version))
	line(".SH NAME\n%s \\- %s", roff(name), roff(cmd.Short))
	line(".SH SYNOPSIS\n.nf\n%s\n.fi", roff(cmd.UseLine()))
	line(".SH DESCRIPTION\n.nf\n%s\n.fi", roff(about(cmd)))
	section := func(title string, flags *pflag.FlagSet) {
		if flags.HasAvailableFlags() {
			line(".SH %s\n.nf\n%s\n.fi", title, roff(strings.TrimRight(flags.FlagUsages(), "\n")))
		}
	}
	cmd.InitDefaultHelpFlag()
	section("OPTIONS", cmd.NonInheritedFlags())
	section("GLOBAL OPTIONS", cmd.InheritedFlags())
	if cmd.Example != "" {
		line(".SH EXAMPLES\n.nf\n%s\n.fi", roff(cmd.Example))
	}
	var related []string
	if cmd.HasParent() {
		related = append(related, strings.ReplaceAll(cmd.Parent().CommandPath(), " ", "-"))
	}
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			related = append(related, name+"-"+sub.Name())
		}
	}
	for i, page := range related {
		related[i] = `\fB` + roff(page) + `\fR(1)`
	}
	line(".SH SEE ALSO\n%s", strings.Join(related, ", "))
	return b.String()
}

func about(cmd *cobra.Command) string {
	if cmd.Long == "" {
		return cmd.Short
	}
	return cmd.Long
}

// roff escapes text, so that no character is a request or starts an escape sequence.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
