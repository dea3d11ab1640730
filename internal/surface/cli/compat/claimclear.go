package compat

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper/internal/compat/author"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

func (p *program) claimClearCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "clear",
		Short: "Clear All Locks: remove the claims of dead sessions, or of everybody",
		Long: `Take claims away, after a crash. It shows them and asks, on a terminal: first about
the claims of those who are gone, then about all others, which is safe only when no
other instance is working. Agents may not do it. What is written and not committed
is copied to lockkeeper rescue first. Locks of agents and jobs stay: lockkeeper lock clear.`,
		Example: `  lockkeeper claim clear`,
		Args:    command.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.With(cmd.Context(), func(a *project.Project) error { return p.clearClaims(cmd.Context(), a) })
		},
	}
}

func (p *program) clearClaims(ctx context.Context, a *project.Project) error {
	if err := p.MayForce("Clear All Locks"); err != nil {
		return err
	}
	au, err := author.Open(a, p.Env)
	if err != nil {
		return err
	}
	list, notes, err := au.Claims(ctx)
	if err != nil {
		return err
	}
	p.tellNotes(notes)
	if len(list) == 0 && len(notes) == 0 {
		return p.cleared(&author.Cleared{}, "No active locks: there is nothing to clear.")
	}
	fmt.Fprintln(p.Err, "Current locks:")
	p.listClaims(p.Err, list)
	typed := bufio.NewReader(p.In)
	freed := &author.Cleared{}
	gone := slices.DeleteFunc(slices.Clone(list), func(s author.GrantStatus) bool { return s.State != author.Gone })
	if len(gone) > 0 && len(gone) < len(list) {
		yes, err := p.yes(typed, fmt.Sprintf("\n%d of them %s gone. Clear these alone? (yes/no): ", len(gone), term.Plural(len(gone), "is", "are")))
		if err != nil {
			return err
		}
		if yes {
			if freed, err = au.Clear(ctx, gone, p.Person(), false); err != nil {
				return err
			}
			return p.cleared(freed, fmt.Sprintf("✓ %s cleared.", term.Counted(countResources(freed.Freed), "lock")))
		}
	}
	fmt.Fprint(p.Err, "\nThis will clear ALL locks, including active ones.\n\n",
		"⚠️ WARNING: This will clear all locks, including active ones from other instances.\nOnly do this if you're sure no other instances are actively working.\n")
	yes, err := p.yes(typed, "\nClear all locks? (yes/no): ")
	if err != nil {
		return err
	}
	if !yes {
		return p.cleared(freed, "Cancelled. Locks unchanged.")
	}
	if freed, err = au.Clear(ctx, list, p.Person(), true); err != nil {
		return err
	}
	return p.cleared(freed, "✓ All locks cleared.")
}

// yes has a person answer a question. Anything but yes is no.
func (p *program) yes(typed *bufio.Reader, question string) (bool, error) {
	fmt.Fprint(p.Err, question)
	line, err := typed.ReadString('\n')
	if err != nil && err != io.EOF {
		return false, err
	}
	return strings.EqualFold(strings.TrimSpace(line), "yes"), nil
}

func (p *program) cleared(done *author.Cleared, message string) error {
	if p.JSON {
		return p.PrintJSON(map[string]any{"cleared": command.ListOf(done.Freed), "message": message})
	}
	_, err := fmt.Fprintln(p.Out, message)
	return err
}
