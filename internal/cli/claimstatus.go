package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/app"
	"lockkeeper/internal/author"
)

func (p *program) claimStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Who has claimed what, and whether they are still at it",
		Long: `List the claims, and how each stands: working, idle (still open), or gone. Stale ones,
without a sign of life for the time that policies.author.ttl says (15 minutes by
default), stand apart. A file named status is claimed as ./status.`,
		Example: `  lockkeeper claim status
  lockkeeper claim status --json | jq -r '.stale[].resources[]'`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.with(cmd.Context(), func(a *app.App) error {
				au, err := author.Open(a, p.Env)
				if err != nil {
					return err
				}
				list, notes, err := au.Claims(cmd.Context())
				if list == nil && err != nil {
					return err
				}
				if err != nil { // the store is the truth
					p.say(err.Error())
				}
				return p.showClaims(list, notes, au.StaleAfter())
			})
		},
	}
}

func (p *program) showClaims(list []author.Standing, notes []author.Note, staleAfter time.Duration) error {
	active, stale := []author.Standing{}, []author.Standing{}
	for _, s := range list {
		if s.Stale {
			stale = append(stale, s)
		} else {
			active = append(active, s)
		}
	}
	if p.json {
		return p.printJSON(map[string]any{"active": active, "stale": stale, "notes": listOf(notes)})
	}
	p.tellNotes(notes)
	if len(list) == 0 {
		_, err := fmt.Fprintln(p.Out, "No active locks: ready for concurrent editing.")
		return err
	}
	if len(active) > 0 {
		fmt.Fprintln(p.Out, "Active Locks:")
		p.listClaims(p.Out, active)
		fmt.Fprintf(p.Out, "\nTotal: %s\n", counted(countResources(active), "active lock"))
		if len(stale) == 0 && slices.ContainsFunc(active, author.Standing.MayOverride) {
			p.advise("lockkeeper claim clear, to free what those who are gone have left")
		}
	}
	if len(stale) > 0 {
		if len(active) > 0 {
			fmt.Fprintln(p.Out)
		}
		fmt.Fprintf(p.Out, "Stale Locks (%s and more):\n", inWords(staleAfter))
		p.listClaims(p.Out, stale)
		p.advise("lockkeeper claim clear (Clear All Locks), to remove stale locks")
	}
	return nil
}

func countResources(list []author.Standing) (n int) {
	for _, s := range list {
		n += len(s.Resources)
	}
	return n
}

// listClaims shows each resource that is claimed in a line of its own.
func (p *program) listClaims(to file, list []author.Standing) {
	for _, s := range list {
		who := clean(s.Instance)
		if s.Who != "" {
			who += " (" + clean(s.Who) + ")"
		}
		for _, name := range s.Resources {
			line := fmt.Sprintf("- %s: Locked %s by %s, %s", clean(name), minutesAgo(s.Minutes), who, s.State)
			if s.Mode == lockkeeper.Read {
				line += ", reading"
			}
			if s.Reason != "" {
				line += ", for " + clean(s.Reason)
			}
			if s.Stale {
				line += " (STALE)"
			}
			fmt.Fprintln(to, strings.TrimSpace(line))
		}
	}
}
