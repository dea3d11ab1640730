package compat

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/compat/author"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

func (p *program) claimStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show who has claimed what and whether they are still active",
		Long: `List the claims and whether each holder is working, idle (still open) or gone. Stale
claims, without a sign of life for policies.author.ttl (15 minutes by default), are
listed separately. To claim a file named status, write ./status.`,
		Example: `  lockkeeper claim status
  lockkeeper claim status --json | jq -r '.stale[].resources[]'`,
		RunE: p.OnProject(func(cmd *cobra.Command, a *project.Project, _ []string) error {
			au, err := author.Open(a, p.Env)
			if err != nil {
				return err
			}
			list, notes, err := au.Claims(cmd.Context())
			if list == nil && err != nil {
				return err
			}
			if err != nil { // the claims are listed anyway, because they come from the store
				p.Say(err.Error())
			}
			return p.showClaims(list, notes, au.StaleAfter())
		}),
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
		return p.PrintJSON(map[string]any{"active": active, "stale": stale, "notes": acts.OrEmpty(notes)})
	}
	p.tellNotes(notes)
	if len(list) == 0 {
		fmt.Fprintln(p.Out, "No active locks: ready for concurrent editing.")
		return nil
	}
	if len(active) > 0 {
		fmt.Fprintln(p.Out, "Active Locks:")
		p.listClaims(p.Out, active)
		fmt.Fprintf(p.Out, "\nTotal: %s\n", term.Counted(countResources(active), "active lock"))
		if len(stale) == 0 && slices.ContainsFunc(active, author.GrantStatus.MayOverride) {
			p.Advise("lockkeeper claim clear, which releases the claims of holders that are gone")
		}
	}
	if len(stale) > 0 {
		if len(active) > 0 {
			fmt.Fprintln(p.Out)
		}
		fmt.Fprintf(p.Out, "Stale Locks (%s and more):\n", inWords(staleAfter))
		p.listClaims(p.Out, stale)
		p.Advise("lockkeeper claim clear (Clear All Locks), which removes stale locks")
	}
	return nil
}

func countResources(list []author.GrantStatus) (n int) {
	for _, s := range list {
		n += len(s.Resources)
	}
	return n
}

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

func (p *program) claimClearCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "clear",
		Short: "Clear All Locks: remove the claims of dead sessions, or all claims",
		Long: `Remove claims, for example after a crash. It shows them and asks, so it needs a terminal:
first about claims whose holder is gone, then about all others. The latter is safe only if
no other instance is working. Agents cannot run it. Uncommitted changes are copied to
lockkeeper rescue first. Locks of agents and jobs stay; see lockkeeper lock clear.`,
		Example: `  lockkeeper claim clear`,
		RunE:    p.OnProject(func(cmd *cobra.Command, a *project.Project, _ []string) error { return p.clearClaims(cmd.Context(), a) }),
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
		yes, err := p.yes(typed, fmt.Sprintf("\n%d of them %s gone. Clear only these? (yes/no): ", len(gone), term.Plural(len(gone), "is", "are")))
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
		return p.cleared(freed, "Canceled. Locks unchanged.")
	}
	if freed, err = au.Clear(ctx, list, p.Person(), true); err != nil {
		return err
	}
	return p.cleared(freed, "✓ All locks cleared.")
}

// yes asks a person a question. Any answer but yes is no.
func (p *program) yes(typed *bufio.Reader, question string) (bool, error) {
	fmt.Fprint(p.Err, question)
	line, err := typed.ReadString('\n')
	if err != nil && err != io.EOF {
		return false, err
	}
	return command.Yes(strings.TrimSpace(line)), nil
}

func (p *program) cleared(done *author.Cleared, message string) error {
	return p.Answer(map[string]any{"cleared": acts.OrEmpty(done.Freed), "message": message}, "%s", message)
}

// tellAnswer prints the notes of a claim, and the claims that it cleared.
func (p *program) tellAnswer(a *author.Result) {
	p.tellNotes(a.Notes)
	for _, s := range a.Cleaned {
		fmt.Fprintf(p.Err, "note: cleared the claim of %s on %s: %s, no sign of life for over an hour\n", term.Clean(s.Instance), term.Clean(strings.Join(s.Resources, ", ")), s.State)
	}
}

func (p *program) tellNotes(notes []author.Note) {
	for _, n := range notes {
		p.tellNote(n)
	}
}

func (p *program) tellNote(n author.Note) { fmt.Fprint(p.Err, NoteText(n)) }

// NoteText returns a note about the claims file, for people.
func NoteText(n author.Note) string {
	switch n.Kind {
	case author.Collision:
		var holders []string
		for _, s := range n.Blockers {
			holders = append(holders, fmt.Sprintf("%s (%s, %s)", term.Clean(s.Instance), term.Clean(strings.Join(s.Resources, ", ")), s.State))
		}
		return fmt.Sprintf("⚠️ %s claims %s in the lock file, but %s holds it. The holder keeps it; writes of the other instance are not covered.\nnext: tell the person who runs %s; lockkeeper claim status\n",
			term.Clean(n.Entry.Instance), term.Clean(n.Entry.Resource), strings.Join(holders, " and "), term.Clean(n.Entry.Instance))
	case author.Duplicate:
		return fmt.Sprintf("⚠️ %s has several locks in the lock file. The newest counts, not that of %s.\nnext: lockkeeper claim clear (Clear All Locks), when no instance works on it\n", term.Clean(n.Entry.Resource), term.Clean(n.Entry.Instance))
	case author.Corrupted:
		return fmt.Sprintf("⚠️ Lock file was corrupted and has been reset (%s).\nBackup saved to: %s\n%s that could be read %s kept; claims made with Lockkeeper are not lost.\nProceeding with operation...\n",
			term.Clean(n.Corrupt.Reason), term.Clean(n.Corrupt.Backup), term.Counted(n.Corrupt.Saved, "lock"), term.Plural(n.Corrupt.Saved, "is", "are"))
	case author.Unusable:
		return fmt.Sprintf("note: the lock file has a claim of %s on %q, which cannot be locked\n", term.Clean(n.Entry.Instance), term.Clean(n.Entry.Resource))
	}
	return ""
}
