package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockkeeper/durable"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
)

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

// writePages writes one page for a command and each command below it.
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
	line(`.TH "%s" "1" "" "Lockkeeper %s" "Lockkeeper Manual"`, strings.ToUpper(roff(name)), roff(project.Version()))
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

// about returns the description of a command.
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
