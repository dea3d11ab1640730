package landings

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper/gate"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

func (p *program) recoverCommand() *cobra.Command {
	var lost uint64
	var reason string
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "Recover landings that a crash interrupted",
		Long: `Recover landings that a crash interrupted. A decided landing is completed, or rolled back
if another edit conflicts with it; the rest is removed. Originals and kept changes older
than gate.keep are deleted. Every command recovers by itself when it finds an interrupted
landing. Recovery can run at any time, and leaves running landings alone.

A landing decided on another machine can only be completed there. A landing in a
directory that was moved out of the tree waits until the directory is back. If the
machine or the directory will not come back, --abandon gives up one landing, so that its
paths can be locked again. It asks a person, on a terminal.`,
		Example: `  lockkeeper gate recover
  lockkeeper gate recover --abandon 17 --reason "the build machine was scrapped"`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s := p.Settings()
			s.SkipRecovery = true
			return p.WithSettings(cmd.Context(), s, func(a *project.Project) error {
				g, err := a.Gate()
				if err != nil {
					return err
				}
				if cmd.Flags().Changed("abandon") {
					return p.abandon(cmd.Context(), g, lost, reason)
				}
				r, err := g.Recover(cmd.Context())
				if err != nil {
					p.NoteRecovery(&project.Recovery{Report: r})
					return err
				}
				return p.Answer(r, "%s", recovered(r))
			})
		},
	}
	cmd.Flags().Uint64Var(&lost, "abandon", 0, "give up the `landing` with this number, whose machine will not come back")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit trail")
	return cmd
}

// abandon gives up a landing whose machine or directory is lost.
func (p *program) abandon(ctx context.Context, g *gate.Gate, seq uint64, reason string) error {
	if err := command.RequireReason(reason); err != nil {
		return err
	}
	l, err := g.Landing(ctx, seq)
	if err != nil {
		return err
	}
	facts := fmt.Sprintf("Landing %d of %s changes %s. Its changes on a lost machine, or in a missing directory, stay as they are.", l.Seq, term.Clean(l.Holder), term.Counted(len(l.Changes), "file"))
	if err := p.Confirm("abandon", facts, fmt.Sprint(seq)); err != nil {
		return err
	}
	if l, err = g.Abandon(ctx, seq, p.Person(), reason); err != nil {
		return err
	}
	return p.Answer(map[string]any{"landing": seq, "abandoned": true}, "landing %d is abandoned; its paths can be locked again", l.Seq)
}

// recovered describes a recovery, one line for each fact.
func recovered(r gate.Report) string {
	lines := command.Recovered(r)
	if r.Forgot > 0 {
		lines = append(lines, fmt.Sprintf("deleted %d %s older than gate.keep", r.Forgot, term.Plural(r.Forgot, "original or kept change", "originals and kept changes")))
	}
	if r.Working > 0 {
		lines = append(lines, term.Counted(r.Working, "write")+" of other processes "+term.Plural(r.Working, "is", "are")+" in progress")
	}
	for _, away := range r.Elsewhere {
		lines = append(lines, term.Clean(away)+" can only be completed there: run lockkeeper gate recover there, or here with --abandon if it will not come back")
	}
	if len(lines) == 0 {
		lines = []string{"nothing to recover"}
	}
	return strings.Join(lines, "\n")
}
