package landings

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper"
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
landing. It can run at any time, and leaves running landings alone.

A landing decided on another machine can only be completed there, and a landing in a
directory that was moved out of the tree waits until the directory is back. If the
machine or the directory will not come back, --abandon gives up one landing, so that its
paths can be locked again. It asks a person, on a terminal.`,
		Example: `  lockkeeper gate recover
  lockkeeper gate recover --abandon 17 --reason "the build machine was scrapped"`,
		Args: command.Exactly(0, "no arguments"),
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
				if p.JSON {
					return p.PrintJSON(r)
				}
				return p.showRecovery(r)
			})
		},
	}
	cmd.Flags().Uint64Var(&lost, "abandon", 0, "give up the `landing` with this number, whose machine will not come back")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit trail")
	return cmd
}

// abandon gives up a landing whose disk is lost.
func (p *program) abandon(ctx context.Context, g *gate.Gate, seq uint64, reason string) error {
	if strings.TrimSpace(reason) == "" {
		return &lockkeeper.InputError{Field: "reason", Value: reason, Reason: "--reason is required", Next: "give --reason WHY, for the audit trail"}
	}
	l, err := g.Landing(ctx, seq)
	if err != nil {
		return err
	}
	facts := fmt.Sprintf("Landing %d of %s changes %s. What it changed on a lost machine, or in a directory that is away, stays as it is.", l.Seq, term.Clean(l.Holder), term.Counted(len(l.Changes), "file"))
	if err := p.Confirm("abandon", facts, fmt.Sprint(seq)); err != nil {
		return err
	}
	if l, err = g.Abandon(ctx, seq, p.Person(), reason); err != nil {
		return err
	}
	if p.JSON {
		return p.PrintJSON(map[string]any{"landing": seq, "abandoned": true})
	}
	_, err = fmt.Fprintf(p.Out, "landing %d is given up; its paths can be locked again\n", l.Seq)
	return err
}

func (p *program) showRecovery(r gate.Report) error {
	lines := command.Recovered(r)
	if r.Forgot > 0 {
		lines = append(lines, "dropped "+term.Counted(r.Forgot, "piece")+" of originals and rescued content for "+term.Plural(r.Forgot, "its", "their")+" age")
	}
	if r.Working > 0 {
		lines = append(lines, term.Counted(r.Working, "write")+" of others "+term.Plural(r.Working, "is on its way", "are on their way")+" and left alone")
	}
	for _, away := range r.Elsewhere {
		lines = append(lines, term.Clean(away)+" can only be finished there; next: lockkeeper gate recover, there, or with --abandon if that will not come back")
	}
	if len(lines) == 0 {
		lines = []string{"nothing was left"}
	}
	_, err := fmt.Fprintln(p.Out, strings.Join(lines, "\n"))
	return err
}
