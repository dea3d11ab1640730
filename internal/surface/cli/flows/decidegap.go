package flows

import (
	"context"
	"fmt"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
)

func (s *factSheet) gap(g *view.GapDetail) {
	s.add("path", g.Path)
	s.add("reason", g.Reason)
	if g.Fit != nil {
		s.add("now", g.Fit.String())
		s.add("note", g.Fit.Note)
	}
	s.add("batch", g.Batch+", "+g.Title)
	s.add("phase", g.Phase)
	s.add("planned by", g.Planned)
	if g.Rescue != "" {
		s.add("kept", "lockkeeper rescue show "+g.Rescue)
	}
	answer := g.Answer
	if g.By != "" { // the time is not stored
		answer += ", by " + g.By
	}
	s.add("answer", answer)
}

// showPlan prints the plan of a gap.
func (d *decider) showPlan(ctx context.Context, ref progress.Ref) error {
	if ref.Kind != progress.GapKind {
		return &lockkeeper.InputError{Field: "ref", Value: ref.String(), Reason: "only a gap has a plan for work elsewhere", Next: d.flow.Command("decide", "show", ref.String())}
	}
	v, err := view.New(d.flow.App).Decision(ctx, d.flow.Flow.Name, ref)
	if err != nil {
		return err
	}
	return d.Show(map[string]string{"plan": v.Gap.Plan}, func() {
		for line := range strings.Lines(v.Gap.Plan) { // a program gets the plan unchanged
			if term.IsTerminal(d.Out) {
				line = harmless(line) + "\n"
			}
			fmt.Fprint(d.Out, line)
		}
	})
}
