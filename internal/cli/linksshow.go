package cli

import (
	"fmt"
	"strings"

	"lockkeeper/internal/links"
)

// linksAnswer is a report as JSON.
type linksAnswer struct {
	*links.Report
	Orphans []string      `json:"orphans,omitempty"`
	Cycles  []links.Cycle `json:"cycles,omitempty"`
	Fixes   []links.Fix   `json:"fixes,omitempty"`   // proposed, or landed
	Landing uint64        `json:"landing,omitempty"` // of the fixes
}

func answerOf(rep *links.Report) *linksAnswer {
	a := &linksAnswer{Report: rep}
	if rep.Graph != nil {
		a.Orphans, a.Cycles = rep.Graph.Orphans, rep.Graph.Cycles
	}
	return a
}

// showLinks tells what a check found, and fails when something is broken.
func (p *program) showLinks(rep *links.Report, o linksOptions) error {
	var err error
	switch {
	case o.graph == "dot":
		_, err = fmt.Fprint(p.Out, rep.Graph.Dot())
	case o.graph == "json":
		err = p.printJSON(rep.Graph)
	case p.json:
		err = p.printJSON(answerOf(rep))
	default:
		p.listLinks(rep, o)
		fmt.Fprintln(p.Out, linksSummary(rep))
		if n := len(rep.Fixes()); n > 0 {
			p.advise(fmt.Sprintf("lockkeeper links --fix, with the same options, rewrites %s", plural(n, "1 link to a file that has moved", fmt.Sprint(n, " links to files that have moved"))))
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

// linksEnding is how a check ends that leaves so much broken.
func linksEnding(broken int) error {
	if broken > 0 {
		return &codedError{exit: exitFailed}
	}
	return nil
}

// listLinks names what is broken, a line each, and what is valid where that is
// wanted.
func (p *program) listLinks(rep *links.Report, o linksOptions) {
	paint := p.painter(p.Out)
	if o.verbose {
		for _, r := range rep.Valid {
			fmt.Fprintf(p.Out, "%s %s\n", paint(green, "ok:"), describeReference(r))
		}
	}
	for _, f := range rep.Findings {
		line := describeReference(f.Reference)
		if f.Kind == links.Document {
			line = place(f.Reference)
		}
		line += ": " + clean(f.Reason)
		switch {
		case f.Fix != nil:
			line += "; moved to " + clean(f.Fix.To)
		case f.Nearest != "":
			line += "; nearest: " + clean(f.Nearest)
		}
		fmt.Fprintf(p.Out, "%s %s\n", paint(red, "broken:"), line)
	}
	if g := rep.Graph; g != nil && o.verbose {
		for _, name := range g.Orphans {
			fmt.Fprintf(p.Out, "orphan: %s: no other document refers to it\n", clean(name))
		}
		for _, c := range g.Cycles {
			fmt.Fprintf(p.Out, "circle: %s\n", clean(strings.Join(c.Way, " → ")))
		}
	}
}

func place(r links.Reference) string { return fmt.Sprintf("%s:%d", clean(r.File), r.Line) }

func describeReference(r links.Reference) string {
	return fmt.Sprintf("%s: %s %s", place(r), r.Kind, clean(r.Target))
}

func linksSummary(rep *links.Report) string {
	text := fmt.Sprintf("%s, %s", counted(rep.Documents, "document"), counted(rep.References, "reference"))
	if rep.Asked > 0 {
		text += fmt.Sprintf(", %s asked", counted(rep.Asked, "URL"))
	}
	if g := rep.Graph; g != nil {
		text += fmt.Sprintf(", %s, %s", counted(len(g.Orphans), "orphan"), counted(len(g.Cycles), "circle"))
	}
	if n := len(rep.Findings); n > 0 {
		return fmt.Sprintf("%s: %d broken", text, n)
	}
	return text + ": all valid"
}
