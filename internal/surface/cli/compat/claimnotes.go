package compat

import (
	"fmt"
	"strings"

	"lockkeeper/internal/compat/author"
	"lockkeeper/internal/surface/cli/term"
)

// tellAnswer tells what was met on the way to a claim.
func (p *program) tellAnswer(a *author.Result) {
	p.tellNotes(a.Notes)
	for _, s := range a.Cleaned {
		fmt.Fprintf(p.Err, "note: the claim of %s on %s is cleared: %s, and no sign of life for over an hour\n", term.Clean(s.Instance), term.Clean(strings.Join(s.Resources, ", ")), s.State)
	}
}

func (p *program) tellNotes(notes []author.Note) {
	for _, n := range notes {
		p.tellNote(n)
	}
}

// tellNote says what a person should know about the file with the claims.
func (p *program) tellNote(n author.Note) { fmt.Fprint(p.Err, NoteText(n)) }

func NoteText(n author.Note) string {
	switch n.Kind {
	case author.Collision:
		var holders []string
		for _, s := range n.Blockers {
			holders = append(holders, fmt.Sprintf("%s (%s, %s)", term.Clean(s.Instance), term.Clean(strings.Join(s.Resources, ", ")), s.State))
		}
		return fmt.Sprintf("⚠️ %s claims %s in the lock file, which %s has. The holder stays the holder: what the other one writes is not covered.\nnext: tell whoever runs %s; lockkeeper claim status\n",
			term.Clean(n.Entry.Instance), term.Clean(n.Entry.Resource), strings.Join(holders, " and "), term.Clean(n.Entry.Instance))
	case author.Duplicate:
		return fmt.Sprintf("⚠️ %s has several locks in the lock file. The newest counts, not that of %s.\nnext: lockkeeper claim clear (Clear All Locks), when nobody works on it\n", term.Clean(n.Entry.Resource), term.Clean(n.Entry.Instance))
	case author.Corrupted:
		return fmt.Sprintf("⚠️ Lock file was corrupted and has been reset (%s).\nBackup saved to: %s\n%s that could be read %s kept; claims made with Lockkeeper are not lost.\nProceeding with operation...\n",
			term.Clean(n.Corrupt.Reason), term.Clean(n.Corrupt.Backup), term.Counted(n.Corrupt.Saved, "lock"), term.Plural(n.Corrupt.Saved, "is", "are"))
	case author.Unusable:
		return fmt.Sprintf("note: the lock file has a claim of %s on %q, which is nothing that can be locked\n", term.Clean(n.Entry.Instance), term.Clean(n.Entry.Resource))
	}
	return ""
}
