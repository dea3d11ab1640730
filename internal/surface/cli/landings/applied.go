package landings

import (
	"fmt"
	"maps"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/landing"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

type landed struct {
	Path    string              `json:"path"`
	Outcome string              `json:"outcome"`           // one of the outcomes
	Version *lockkeeper.Version `json:"version,omitempty"` // the version that landed
	Refusal map[string]any      `json:"refusal,omitempty"`
}

const (
	outcomeLanded    = "landed"
	outcomeUnchanged = "unchanged" // the file had this content already
	outcomeRefused   = "refused"
	outcomeHeldBack  = "held_back" // the change is valid, but did not land because other files were refused
)

const ignoredShown = 8

// tally has the outcome of each file of a landing, and their counts.
type tally struct {
	landing uint64 // 0: nothing landed
	grant   command.GrantID
	files   []landed
	count   map[string]int
}

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

// showApplied prints the outcome of each file, and fails if one was refused.
func (p *program) showApplied(done *landing.Applied, grant command.GrantID, verbose bool) error {
	t := p.tallyOf(done, grant)
	if p.JSON {
		if err := p.PrintJSON(t.facts(nil)); err != nil {
			return err
		}
	} else {
		p.listApplied(p.Out, t, verbose)
	}
	return t.ending()
}

// showWritten prints only the number of the landing to a pipe, with the rest on standard
// error. A person sees all of it.
func (p *program) showWritten(done *landing.Applied, grant command.GrantID) error {
	if p.JSON || term.IsTerminal(p.Out) {
		return p.showApplied(done, grant, true)
	}
	t := p.tallyOf(done, grant)
	if t.landing != 0 {
		fmt.Fprintln(p.Out, t.landing)
	}
	p.listApplied(p.Err, t, true)
	return t.ending()
}

// showWhole prints the outcome of files that one refusal refused as a whole, in the same JSON
// as other outcomes.
func (p *program) showWhole(done *landing.Applied, refusal error) error {
	if err := p.PrintJSON(p.tallyOf(done, "").facts(p.Facts(refusal))); err != nil {
		return err
	}
	return &command.ExitError{Code: command.ExitCode(refusal)}
}

func (t *tally) facts(more map[string]any) map[string]any {
	all := map[string]any{"landing": t.landing, "files": acts.OrEmpty(t.files)}
	maps.Copy(all, more)
	return all
}

// listApplied prints the files, one per line. Unchanged files are counted, and listed only with verbose.
func (p *program) listApplied(to term.File, t *tally, verbose bool) {
	for _, f := range t.files {
		if !verbose && f.Outcome == outcomeUnchanged {
			continue
		}
		outcome := f.Outcome
		if f.Version != nil && !f.Version.Exists() {
			outcome = "deleted"
		}
		line := fmt.Sprintf("%-9s  %s", outcome, term.Clean(f.Path))
		if message, ok := f.Refusal["message"].(string); ok {
			what, _, _ := command.CutNext(message)
			line += ": " + term.Clean(what)
		}
		fmt.Fprintln(to, line)
	}
	fmt.Fprintln(to, t.summary())
	p.Advise(t.next())
}

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
