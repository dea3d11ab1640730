package command

import (
	"fmt"
	"strings"

	"lockkeeper/gate"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/term"
)

// NoteRecovery tells what was found of crashes before a command.
func (p *Program) NoteRecovery(r *project.Recovery) {
	if r == nil {
		return
	}
	if done := Recovered(r.Report); len(done) > 0 {
		fmt.Fprintf(p.Err, "note: after a crash: %s\n", strings.Join(done, "; "))
	}
	if r.Err != nil {
		what, _, _ := CutLast(r.Err.Error(), NextSep)
		fmt.Fprintf(p.Err, "note: what a crash left could not be brought to its end: %s; next: lockkeeper gate recover\n", term.Clean(what))
	}
}

// Recovered says what a recovery brought to an end.
func Recovered(r gate.Report) (lines []string) {
	for _, group := range []struct {
		done string
		seqs []uint64
	}{{"finished", r.Finished}, {"took back", r.Undone}} {
		if len(group.seqs) > 0 {
			lines = append(lines, group.done+" "+term.Plural(len(group.seqs), "landing", "landings")+" "+strings.Trim(fmt.Sprint(group.seqs), "[]"))
		}
	}
	if r.Cleared > 0 {
		lines = append(lines, "cleared away "+term.Counted(r.Cleared, "write")+" that had not been decided")
	}
	return lines
}
