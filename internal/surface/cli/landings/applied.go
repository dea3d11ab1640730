package landings

import (
	"fmt"
	"maps"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/landing"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

// landed is what became of a file, as JSON.
type landed struct {
	Path    string              `json:"path"`
	Outcome string              `json:"outcome"`           // one of the outcomes
	Version *lockkeeper.Version `json:"version,omitempty"` // what landed
	Refusal map[string]any      `json:"refusal,omitempty"`
}

// The outcomes.
const (
	outcomeLanded    = "landed"
	outcomeUnchanged = "unchanged" // it was so already
	outcomeRefused   = "refused"
	outcomeHeldBack  = "held_back" // nothing is wrong with it, and others were refused
)

// unchangedShown is how many files that were so already are named on a terminal.
const unchangedShown = 8

// tally is what became of files that were to land, and how many of each.
type tally struct {
	landing uint64 // 0: nothing landed
	grant   command.GrantID
	files   []landed
	count   map[string]int
}

// tallyOf counts outcomes.
func (p *program) tallyOf(done *landing.Applied, grant command.GrantID) *tally {
	t := &tally{grant: grant, files: make([]landed, len(done.Files)), count: map[string]int{}}
	if done.Landing != nil {
		t.landing = done.Landing.Seq
	}
	for i, o := range done.Files {
		f := landed{Path: o.Path, Outcome: outcomeUnchanged}
		switch {
		case o.Refusal != nil:
			f.Outcome, f.Refusal = outcomeRefused, p.Facts(o.Refusal)
		case o.Landed:
			f.Outcome, f.Version = outcomeLanded, &o.Version
		case o.HeldBack:
			f.Outcome = outcomeHeldBack
		}
		t.files[i] = f
		t.count[f.Outcome]++
	}
	return t
}

// showApplied tells what became of each file, and fails when one was refused.
func (p *program) showApplied(done *landing.Applied, grant command.GrantID) error {
	t := p.tallyOf(done, grant)
	if p.JSON {
		if err := p.PrintJSON(t.facts(nil)); err != nil {
			return err
		}
	} else {
		p.listApplied(p.Out, t)
		fmt.Fprintln(p.Out, t.summary())
		p.Advise(t.next())
	}
	return t.ending()
}

// showWritten tells a program the bare number of the landing, and the rest beside
// it; a person sees all of it.
func (p *program) showWritten(done *landing.Applied, grant command.GrantID) error {
	if p.JSON || term.IsTerminal(p.Out) {
		return p.showApplied(done, grant)
	}
	t := p.tallyOf(done, grant)
	if t.landing != 0 {
		fmt.Fprintln(p.Out, t.landing)
	}
	p.listApplied(p.Err, t)
	fmt.Fprintln(p.Err, t.summary())
	p.Advise(t.next())
	return t.ending()
}

// showWhole tells a program what became of files of which one refusal refused all,
// in the shape of every other answer.
func (p *program) showWhole(done *landing.Applied, refusal error) error {
	if err := p.PrintJSON(p.tallyOf(done, "").facts(p.Facts(refusal))); err != nil {
		return err
	}
	return &command.ExitError{Code: command.ExitCode(refusal)}
}

// facts is the tally as JSON, added to what else is known.
func (t *tally) facts(more map[string]any) map[string]any {
	all := map[string]any{"landing": t.landing, "files": command.ListOf(t.files)}
	maps.Copy(all, more)
	return all
}

// listApplied names the files, a line each. What was so already is counted alone
// where a person would have to look for the rest among it.
func (p *program) listApplied(to term.File, t *tally) {
	brief := t.count[outcomeUnchanged] > term.Few(to, unchangedShown)
	for _, f := range t.files {
		if brief && f.Outcome == outcomeUnchanged {
			continue
		}
		outcome := f.Outcome
		if f.Version != nil && !f.Version.Exists() {
			outcome = "deleted"
		}
		line := fmt.Sprintf("%-9s  %s", outcome, term.Clean(f.Path))
		if message, ok := f.Refusal["message"].(string); ok {
			what, _, _ := command.CutLast(message, command.NextSep)
			line += ": " + term.Clean(what)
		}
		fmt.Fprintln(to, line)
	}
}

// summary is the last line about files that were to land.
func (t *tally) summary() string {
	var parts []string
	for _, outcome := range []string{outcomeLanded, outcomeUnchanged, outcomeRefused} {
		if n := t.count[outcome]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, outcome))
		}
	}
	what := "nothing landed"
	if t.landing != 0 {
		what = fmt.Sprintf("landing %d", t.landing)
	}
	return what + ": " + strings.Join(parts, ", ")
}

// next is what can be done now; empty when there is nothing.
func (t *tally) next() string {
	switch {
	case t.count[outcomeRefused] > 0:
		return "lockkeeper rescue list"
	case t.landing == 0:
		return ""
	}
	return command.UndoStep(t.landing, t.grant)
}

func (t *tally) ending() error {
	if t.count[outcomeRefused] > 0 {
		return &command.ExitError{Code: command.ExitViolation}
	}
	return nil
}
