package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper/gate"
	"lockkeeper/internal/app"
)

func (p *program) recoverCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "recover",
		Short: "Bring to an end what crashes left",
		Long: `Bring to an end what crashes left of writes: what was decided is finished, or
taken back where somebody else's edit is in its way; the rest is cleared away.
Originals and rescued content that are older than gate.keep are dropped. Every
command does the first by itself when it finds something left. It may run at any
time; what somebody alive works on is left alone.`,
		Example: `  lockkeeper gate recover`,
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s := p.settings()
			s.SkipRecovery = true
			return p.withSettings(cmd.Context(), s, func(a *app.App) error {
				g, err := a.Gate()
				if err != nil {
					return err
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
		lines = append(lines, clean(away)+" can only be finished there; next: lockkeeper gate recover, there")
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
