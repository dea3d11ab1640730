package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/app"
)

func (p *program) recoverCommand() *cobra.Command {
	var lost uint64
	var reason string
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "Bring to an end what crashes left",
		Long: `Bring to an end what crashes left of writes: what was decided is finished, or
taken back where somebody else's edit is in its way; the rest is cleared away.
Originals and rescued content that are older than gate.keep are dropped. Every
command does the first by itself when it finds something left. It may run at any
time; what somebody alive works on is left alone.

What was decided on another machine can only be finished there, and a landing that
changed files in a directory that was moved out of the tree waits until it is back.
If the machine or the directory will not come back, --abandon gives up one landing,
so that its paths can be locked again. It asks a person, on a terminal.`,
		Example: `  lockkeeper gate recover
  lockkeeper gate recover --abandon 17 --reason "the build machine was scrapped"`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s := p.settings()
			s.SkipRecovery = true
			return p.withSettings(cmd.Context(), s, func(a *app.App) error {
				g, err := a.Gate()
				if err != nil {
					return err
				}
				if cmd.Flags().Changed("abandon") {
					return p.abandon(cmd.Context(), g, lost, reason)
				}
				r, err := g.Recover(cmd.Context())
				if err != nil {
					p.noteRecovery(&app.Recovery{Report: r})
					return err
				}
				if p.json {
					return p.printJSON(r)
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
		return &lockkeeper.InputError{Field: "reason", Value: reason, Reason: "empty", Next: "say why with --reason, for the audit trail"}
	}
	l, err := g.Landing(ctx, seq)
	if err != nil {
		return err
	}
	facts := fmt.Sprintf("Landing %d of %s changes %s. What it changed on a lost machine, or in a directory that is away, stays as it is.", l.Seq, clean(l.Holder), counted(len(l.Changes), "file"))
	if err := p.confirm("abandon", facts, fmt.Sprint(seq)); err != nil {
		return err
	}
	if l, err = g.Abandon(ctx, seq, p.person(), reason); err != nil {
		return err
	}
	if p.json {
		return p.printJSON(map[string]any{"landing": seq, "abandoned": true})
	}
	_, err = fmt.Fprintf(p.Out, "landing %d is given up; its paths can be locked again\n", l.Seq)
	return err
}

func (p *program) showRecovery(r gate.Report) error {
	lines := recovered(r)
	if r.Forgot > 0 {
		lines = append(lines, "dropped "+counted(r.Forgot, "piece")+" of originals and rescued content for "+plural(r.Forgot, "its", "their")+" age")
	}
	if r.Working > 0 {
		lines = append(lines, counted(r.Working, "write")+" of others "+plural(r.Working, "is on its way", "are on their way")+" and left alone")
	}
	for _, away := range r.Away {
		lines = append(lines, clean(away)+" can only be finished there; next: lockkeeper gate recover, there, or with --abandon if that will not come back")
	}
	if len(lines) == 0 {
		lines = []string{"nothing was left"}
	}
	_, err := fmt.Fprintln(p.Out, strings.Join(lines, "\n"))
	return err
}

// recovered says what a recovery brought to an end.
func recovered(r gate.Report) (lines []string) {
	for _, group := range []struct {
		done string
		seqs []uint64
	}{{"finished", r.Finished}, {"took back", r.Undone}} {
		if len(group.seqs) > 0 {
			lines = append(lines, group.done+" "+plural(len(group.seqs), "landing", "landings")+" "+strings.Trim(fmt.Sprint(group.seqs), "[]"))
		}
	}
	if r.Cleared > 0 {
		lines = append(lines, "cleared away "+counted(r.Cleared, "write")+" that had not been decided")
	}
	return lines
}

// noteRecovery tells what was found of crashes before a command.
func (p *program) noteRecovery(r *app.Recovery) {
	if r == nil {
		return
	}
	if done := recovered(r.Report); len(done) > 0 {
		fmt.Fprintf(p.Err, "note: after a crash: %s\n", strings.Join(done, "; "))
	}
	if r.Err != nil {
		what, _, _ := cutLast(r.Err.Error(), nextSep)
		fmt.Fprintf(p.Err, "note: what a crash left could not be brought to its end: %s; next: lockkeeper gate recover\n", clean(what))
	}
}
