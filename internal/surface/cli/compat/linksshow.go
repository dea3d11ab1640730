package compat

import (
	"fmt"
	"strings"

	"lockkeeper/internal/compat/links"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

// linksAnswer is a report as JSON.
type linksAnswer struct {
	*links.Report
	Orphans []string      `json:"orphans,omitempty"`
	Cycles  []links.Cycle `json:"cycles,omitempty"`
	Fixes   []links.Fix   `json:"fixes,omitempty"`   // proposed, or landed
	Landing uint64        `json:"landing,omitempty"` // landing of the fixes
}

func answerOf(rep *links.Report) *linksAnswer {
	a := &linksAnswer{Report: rep}
	if rep.Graph != nil {
		a.Orphans, a.Cycles = rep.Graph.Orphans, rep.Graph.Cycles
	}
	return a
}

// showLinks prints the findings, and fails if there are any.
func (p *program) showLinks(rep *links.Report, o linksOptions) error {
	var err error
	switch {
	case o.graph == "dot":
		_, err = fmt.Fprint(p.Out, rep.Graph.Dot())
	case o.graph == "json":
		err = p.PrintJSON(rep.Graph)
	case p.JSON:
		err = p.PrintJSON(answerOf(rep))
	default:
		p.listLinks(rep, o)
		fmt.Fprintln(p.Out, linksSummary(rep))
		if n := len(rep.Fixes()); n > 0 {
			p.Advise(fmt.Sprintf("lockkeeper links --fix, with the same options, rewrites %s", term.Plural(n, "1 link to a moved file", fmt.Sprint(n, " links to moved files"))))
		}
	}
	if o.graph != "" {
		fmt.Fprintln(p.Err, linksSummary(rep))
	}
	if err != nil {
		return err
	}
	return linksEnding(len(rep.Findings))
}

// linksEnding returns how a check with so many broken references ends.
func linksEnding(broken int) error {
	if broken > 0 {
		return &command.ExitError{Code: command.ExitFailed}
	}
	return nil
}

// listLinks prints broken references, one per line, and with --verbose also valid ones.
func (p *program) listLinks(rep *links.Report, o linksOptions) {
	paint := p.Painter(p.Out)
	if o.verbose {
		for _, r := range rep.Valid {
			fmt.Fprintf(p.Out, "%s %s\n", paint(term.Green, "ok:"), describeReference(r))
		}
	}
	for _, f := range rep.Findings {
		line := describeReference(f.Reference)
		if f.Kind == links.Document {
			line = position(f.Reference)
		}
		line += ": " + term.Clean(f.Reason)
		switch {
		case f.Fix != nil:
			line += "; moved to " + term.Clean(f.Fix.To)
		case f.Nearest != "":
			line += "; nearest: " + term.Clean(f.Nearest)
		}
		fmt.Fprintf(p.Out, "%s %s\n", paint(term.Red, "broken:"), line)
	}
	if g := rep.Graph; g != nil && o.verbose {
		for _, name := range g.Orphans {
			fmt.Fprintf(p.Out, "orphan: %s: no other document refers to it\n", term.Clean(name))
		}
		for _, c := range g.Cycles {
			fmt.Fprintf(p.Out, "cycle: %s\n", term.Clean(strings.Join(c.Path, " → ")))
		}
	}
}

func position(r links.Reference) string { return fmt.Sprintf("%s:%d", term.Clean(r.File), r.Line) }

func describeReference(r links.Reference) string {
	return fmt.Sprintf("%s: %s %s", position(r), r.Kind, term.Clean(r.Target))
}

func linksSummary(rep *links.Report) string {
	text := fmt.Sprintf("%s, %s", term.Counted(rep.Documents, "document"), term.Counted(rep.References, "reference"))
	if rep.Asked > 0 {
		text += fmt.Sprintf(", %s checked", term.Counted(rep.Asked, "URL"))
	}
	if g := rep.Graph; g != nil {
		text += fmt.Sprintf(", %s, %s", term.Counted(len(g.Orphans), "orphan"), term.Counted(len(g.Cycles), "cycle"))
	}
	if n := len(rep.Findings); n > 0 {
		return fmt.Sprintf("%s: %d broken", text, n)
	}
	return text + ": all valid"
}
