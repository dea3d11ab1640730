package flows

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

func (d *decider) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show REF",
		Short: "Show the facts and the diff of a decision",
		Long: `Show all that is known of what is to be decided, or was: the prompt of a topic, an
item with its rationale, the batches of a plan with what they change, the diff of a
batch. The name of a unit alone shows its items, decisions and batches.`,
		Example: `  lockkeeper decide show item blog/posts/i3
  lockkeeper decide show blog/posts
  lockkeeper decide show review blog/posts/b1 --json | jq -r .diff`,
		Args: command.AtLeast(1, "a reference"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return d.open(ctx, func() error {
				ref, rest, err := d.ref(ctx, args, kinds()...)
				switch {
				case err != nil:
					return err
				case len(rest) > 0:
					return command.Usage(cmd, "shows one thing")
				}
				return d.show(ctx, ref)
			})
		},
	}
}

// show prints what is known of a reference.
func (d *decider) show(ctx context.Context, ref progress.Ref) error {
	s, err := d.desk.Sheet(ctx, ref)
	if err != nil {
		return err
	}
	if d.JSON {
		return d.PrintJSON(s)
	}
	d.printSheet(d.Out, s)
	d.Advise(d.ways(s))
	return nil
}

func (d *decider) printSheet(to term.File, s *acts.Sheet) {
	fmt.Fprintln(to, d.Painter(to)(term.Bold, term.Clean(s.Ref.String())))
	if s.Waits {
		fmt.Fprintf(to, "  waits: since %s (%s), for you; frees %s\n", acts.Moment(s.Since), d.ago(s.Since), frees(s.Frees, s.Left))
	}
	for _, f := range s.Facts {
		fmt.Fprintf(to, "  %s: %s\n", term.Clean(f.Name), indented(f.Value))
	}
	if len(s.Same) > 0 {
		fmt.Fprintf(to, "  the same elsewhere: %s\n", names(s.Same))
	}
	for line := range strings.Lines(s.Diff) { // a program gets it as it is
		if term.IsTerminal(to) {
			line = harmless(line) + "\n"
		}
		fmt.Fprint(to, line)
	}
}

// indented is text from elsewhere, harmless, its lines below each other.
func indented(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, line := range lines {
		lines[i] = harmless(line)
	}
	return strings.Join(lines, "\n    ")
}

// harmless is a line from elsewhere that cannot play with the terminal.
func harmless(line string) string {
	return term.Clean(strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    "))
}

// ways is what can be said to it.
func (d *decider) ways(s *acts.Sheet) string {
	if !s.Waits {
		return ""
	}
	var ways []string
	for _, a := range acts.Answers() {
		if a.Kind == s.Ref.Kind && a.Word != "api" {
			way := d.desk.Command("decide", a.Word, s.Ref.String())
			if a.Asks != "" {
				way += ` --note "…"`
			}
			ways = append(ways, way)
		}
	}
	return strings.Join(ways, ", or ")
}
