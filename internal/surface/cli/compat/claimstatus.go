package compat

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/compat/author"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

func (p *program) claimStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show who has claimed what and whether they are still active",
		Long: `List the claims, and how each stands: working, idle (still open), or gone. Stale ones,
without a sign of life for the time that policies.author.ttl says (15 minutes by
default), stand apart. A file named status is claimed as ./status.`,
		Example: `  lockkeeper claim status
  lockkeeper claim status --json | jq -r '.stale[].resources[]'`,
		Args: command.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.With(cmd.Context(), func(a *project.Project) error {
				au, err := author.Open(a, p.Env)
				if err != nil {
					return err
				}
				list, notes, err := au.Claims(cmd.Context())
				if list == nil && err != nil {
					return err
				}
				if err != nil { // the store is the truth
					p.Say(err.Error())
				}
				return p.showClaims(list, notes, au.StaleAfter())
			})
		},
	}
}

func (p *program) showClaims(list []author.GrantStatus, notes []author.Note, staleAfter time.Duration) error {
	active, stale := []author.GrantStatus{}, []author.GrantStatus{}
	for _, s := range list {
		if s.Stale {
			stale = append(stale, s)
		} else {
			active = append(active, s)
		}
	}
	if p.JSON {
		return p.PrintJSON(map[string]any{"active": active, "stale": stale, "notes": command.ListOf(notes)})
	}
	p.tellNotes(notes)
	if len(list) == 0 {
		_, err := fmt.Fprintln(p.Out, "No active locks: ready for concurrent editing.")
		return err
	}
	if len(active) > 0 {
		fmt.Fprintln(p.Out, "Active Locks:")
		p.listClaims(p.Out, active)
		fmt.Fprintf(p.Out, "\nTotal: %s\n", term.Counted(countResources(active), "active lock"))
		if len(stale) == 0 && slices.ContainsFunc(active, author.GrantStatus.MayOverride) {
			p.Advise("lockkeeper claim clear, to free what those who are gone have left")
		}
	}
	if len(stale) > 0 {
		if len(active) > 0 {
			fmt.Fprintln(p.Out)
		}
		fmt.Fprintf(p.Out, "Stale Locks (%s and more):\n", inWords(staleAfter))
		p.listClaims(p.Out, stale)
		p.Advise("lockkeeper claim clear (Clear All Locks), to remove stale locks")
	}
	return nil
}

func countResources(list []author.GrantStatus) (n int) {
	for _, s := range list {
		n += len(s.Resources)
	}
	return n
}

// listClaims shows each resource that is claimed in a line of its own.
func (p *program) listClaims(to term.File, list []author.GrantStatus) {
	for _, s := range list {
		who := term.Clean(s.Instance)
		if s.Who != "" {
			who += " (" + term.Clean(s.Who) + ")"
		}
		for _, name := range s.Resources {
			line := fmt.Sprintf("- %s: Locked %s by %s, %s", term.Clean(name), minutesAgo(s.Minutes), who, s.State)
			if s.Mode == lockkeeper.Read {
				line += ", reading"
			}
			if s.Reason != "" {
				line += ", for " + term.Clean(s.Reason)
			}
			if s.Stale {
				line += " (STALE)"
			}
			fmt.Fprintln(to, strings.TrimSpace(line))
		}
	}
}
