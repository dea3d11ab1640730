package flows

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

func (d *decider) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show REF",
		Short: "Show the facts and the diff of a decision",
		Long: `Show a decision, open or answered: the prompt of a topic, an item with its rationale, the
batches of a plan with their changes, or the diff of a batch. The name of a unit shows
its items, decisions and batches.`,
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
					return command.Usage(cmd, "takes one reference")
				}
				return d.show(ctx, ref)
			})
		},
	}
}

// show prints one decision.
func (d *decider) show(ctx context.Context, ref progress.Ref) error {
	s, err := d.facts(ctx, ref)
	if err != nil {
		return err
	}
	if d.JSON {
		return d.PrintJSON(s)
	}
	d.printFacts(d.Out, s)
	d.Advise(d.steps(s))
	return nil
}

func (d *decider) printFacts(to term.File, s *factSheet) {
	fmt.Fprintln(to, d.Painter(to)(term.Bold, term.Clean(s.Ref.String())))
	if s.Waits {
		fmt.Fprintf(to, "  waits: for you since %s (%s); unblocks %s\n", s.at(s.Since), d.ago(s.Since), frees(s.Frees, s.Left))
	}
	for _, f := range s.Facts {
		fmt.Fprintf(to, "  %s: %s\n", term.Clean(f.Name), indented(f.Value))
	}
	if len(s.Same) > 0 {
		fmt.Fprintf(to, "  equal items: %s\n", names(s.Same))
	}
	for line := range strings.Lines(s.Diff) { // unchanged for a program
		if term.IsTerminal(to) {
			line = harmless(line) + "\n"
		}
		fmt.Fprint(to, line)
	}
}

// indented returns untrusted text, cleaned, with its lines below each other.
func indented(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, line := range lines {
		lines[i] = harmless(line)
	}
	return strings.Join(lines, "\n    ")
}

// harmless returns an untrusted line, cleaned for the terminal.
func harmless(line string) string {
	return term.Clean(strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    "))
}

// steps returns the commands that answer an open decision.
func (d *decider) steps(s *factSheet) string {
	if !s.Waits {
		return ""
	}
	var steps []string
	for _, a := range acts.Answers() {
		if a.Kind == s.Ref.Kind && a.Word != "api" {
			step := d.flow.Command("decide", a.Word, s.Ref.String())
			if a.Asks != "" {
				step += ` --note "…"`
			}
			steps = append(steps, step)
		}
	}
	return strings.Join(steps, ", or ")
}

// kinds returns the kinds of references, in the order of a flow.
func kinds() []progress.Kind {
	return []progress.Kind{progress.TopicKind, progress.ItemKind, progress.PlanKind, progress.ReviewKind, progress.GapKind}
}

// refs parses references of some kinds, each one word, or two with its kind.
func (d *decider) refs(ctx context.Context, words []string, of ...progress.Kind) (list []progress.Ref, err error) {
	for len(words) > 0 {
		ref, rest, err := d.ref(ctx, words, of...)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(list, ref) {
			list = append(list, ref)
		}
		words = rest
	}
	return list, nil
}

// ref parses the reference at the start of words, and returns the rest. Without its kind the
// name must be unambiguous.
func (d *decider) ref(ctx context.Context, words []string, of ...progress.Kind) (ref progress.Ref, rest []string, err error) {
	text, rest := words[0], words[1:]
	if slices.Contains(kinds(), progress.Kind(text)) && len(rest) > 0 {
		text, rest = text+" "+rest[0], rest[1:]
	}
	if strings.Contains(text, " ") {
		if ref, err = progress.ParseRef(text); err != nil {
			return ref, nil, err
		}
		if !slices.Contains(of, ref.Kind) {
			return ref, nil, &lockkeeper.InputError{Field: "reference", Value: text, Reason: "needs a reference of the kind " + alternatives(of), Next: d.flow.Command("decide", "show", ref.String())}
		}
		_, err = d.flow.Unit(ctx, ref.Unit)
		return ref, rest, err
	}
	var found []progress.Ref
	for _, kind := range of {
		ref, err := progress.ParseRef(string(kind) + " " + text)
		if err != nil {
			continue
		}
		there, err := d.flow.Has(ctx, ref)
		if err != nil {
			return ref, nil, err
		}
		if there {
			found = append(found, ref)
		}
	}
	switch len(found) {
	case 0:
		return ref, nil, &lockkeeper.InputError{Field: "reference", Value: text, Reason: "no such " + alternatives(of) + " in the flow " + d.flow.Flow.Name, Next: d.flow.Command("decide")}
	case 1:
		return found[0], rest, nil
	}
	return ref, nil, &lockkeeper.InputError{Field: "reference", Value: text, Reason: "ambiguous: " + found[0].String() + " or " + found[1].String(), Next: "write " + found[0].String()}
}

func alternatives(of []progress.Kind) string {
	names := make([]string, len(of))
	for i, kind := range of {
		names[i] = string(kind)
	}
	return strings.Join(names, " or ")
}
