package cli

import (
	"fmt"
	"maps"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/app"
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
	grant   grantID
	files   []landed
	count   map[string]int
}

// tallyOf counts outcomes.
func (p *program) tallyOf(done *app.Applied, grant grantID) *tally {
	t := &tally{grant: grant, files: make([]landed, len(done.Files)), count: map[string]int{}}
	if done.Landing != nil {
		t.landing = done.Landing.Seq
	}
	for i, o := range done.Files {
		f := landed{Path: o.Path, Outcome: outcomeUnchanged}
		switch {
		case o.Refusal != nil:
			f.Outcome, f.Refusal = outcomeRefused, p.facts(o.Refusal)
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
func (p *program) showApplied(done *app.Applied, grant grantID) error {
	t := p.tallyOf(done, grant)
	if p.json {
		if err := p.printJSON(t.facts(nil)); err != nil {
			return err
		}
	} else {
		p.listApplied(p.Out, t)
		fmt.Fprintln(p.Out, t.summary())
		p.advise(t.next())
	}
	return t.ending()
}

// showWritten tells a program the bare number of the landing, and the rest beside
// it; a person sees all of it.
func (p *program) showWritten(done *app.Applied, grant grantID) error {
	if p.json || isTerminal(p.Out) {
		return p.showApplied(done, grant)
	}
	t := p.tallyOf(done, grant)
	if t.landing != 0 {
		fmt.Fprintln(p.Out, t.landing)
	}
	p.listApplied(p.Err, t)
	fmt.Fprintln(p.Err, t.summary())
	p.advise(t.next())
	return t.ending()
}

// showWhole tells a program what became of files of which one refusal refused all,
// in the shape of every other answer.
func (p *program) showWhole(done *app.Applied, refusal error) error {
	if err := p.printJSON(p.tallyOf(done, "").facts(p.facts(refusal))); err != nil {
		return err
	}
	return &codedError{exit: exitCode(refusal)}
}

// facts is the tally as JSON, added to what else is known.
func (t *tally) facts(more map[string]any) map[string]any {
	all := map[string]any{"landing": t.landing, "files": listOf(t.files)}
	maps.Copy(all, more)
	return all
}

// listApplied names the files, a line each. What was so already is counted alone
// where a person would have to look for the rest among it.
func (p *program) listApplied(to file, t *tally) {
	brief := t.count[outcomeUnchanged] > few(to, unchangedShown)
	for _, f := range t.files {
		if brief && f.Outcome == outcomeUnchanged {
			continue
		}
		outcome := f.Outcome
		if f.Version != nil && !f.Version.Exists() {
			outcome = "deleted"
		}
		line := fmt.Sprintf("%-9s  %s", outcome, clean(f.Path))
		if message, ok := f.Refusal["message"].(string); ok {
			what, _, _ := cutLast(message, nextSep)
			line += ": " + clean(what)
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
	return undoStep(t.landing, t.grant)
}

// undoStep says how a landing is taken back while its grant is held, and after.
func undoStep(landing uint64, grant grantID) string {
	if grant == "" {
		return fmt.Sprintf("lockkeeper undo %d takes it back", landing)
	}
	return fmt.Sprintf("lockkeeper undo %d --grant %s takes it back; after lock release: lockkeeper undo %d", landing, grant, landing)
}

func (t *tally) ending() error {
	if t.count[outcomeRefused] > 0 {
		return &codedError{exit: exitViolation}
	}
	return nil
}
