package projecttest

import (
	"fmt"
	"testing"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/project"
)

func Tracker(t testing.TB, a *project.Project) *progress.Tracker {
	t.Helper()
	tracker, _, _, err := conduct.OpenDocuments(a, flow.Controllers().Name)
	Must(t, err)
	return tracker
}

// Audited brings a unit to the decision about its items, one per description.
func Audited(t testing.TB, b *progress.Tracker, unit string, descriptions ...string) {
	t.Helper()
	Must(t, b.PutAnalysis(t.Context(), unit, flow.Analysis{Purpose: unit, Behaviour: "it is there", Files: []string{}, Topics: []flow.Topic{}}, nil))
	Synthesized(t, b, unit, descriptions...)
}

// Synthesized does the same as Audited for a unit with an analysis.
func Synthesized(t testing.TB, b *progress.Tracker, unit string, descriptions ...string) {
	t.Helper()
	var e flow.Extract
	s := flow.Synthesis{Dropped: []flow.Dropped{}}
	for i, d := range descriptions {
		e.Items = append(e.Items, flow.Possible{Description: d})
		s.Items = append(s.Items, flow.Ready{ID: fmt.Sprintf("i%d", i+1), Description: d, Impact: flow.High, Effort: flow.Low, Rationale: "because"})
	}
	ctx := t.Context()
	Must(t, b.PutExtract(ctx, unit, e, nil), b.PutSynthesis(ctx, unit, s, nil), b.Audit(ctx, unit))
}

// Planned brings a unit with two items to a plan of two batches that is not approved yet.
func Planned(t testing.TB, b *progress.Tracker, unit string, targets ...string) {
	t.Helper()
	Audited(t, b, unit, "Fix "+unit, "Polish "+unit)
	ctx := t.Context()
	Must(t, b.Decide(ctx, unit, "ann", progress.Choice{Item: "i1", Decision: flow.Todo}, progress.Choice{Item: "i2", Decision: flow.Todo}),
		b.PutPlan(ctx, unit, []flow.Batch{
			{ID: "b1", Title: "Fix it", Items: []string{"i1"}, WriteTargets: targets, Effort: flow.Low},
			{ID: "b2", Title: "Polish it", Items: []string{"i2"}, WriteTargets: targets, Effort: flow.Low},
		}, nil))
}

// Verified brings a batch to a verified change: the first version of its agent, or, if a person
// returned it, the next one.
func Verified(t testing.TB, b *progress.Tracker, unit, batch string, files []flow.File, gaps ...flow.Gap) {
	t.Helper()
	ctx := t.Context()
	begun, err := b.Begin(ctx, unit, batch, "runner")
	Must(t, err)
	passed := flow.Checked{State: flow.CheckPassed, Passed: true, Runs: []flow.CheckRun{}, Files: files, Gaps: []flow.Gap{}}
	tested := passed
	if begun.Returned() {
		tested.Gaps = append(tested.Gaps, gaps...)
	} else {
		Must(t, b.PutApplied(ctx, unit, batch, flow.Applied{Batch: begun.Digest, Summary: "fixed", Files: files, Gaps: append([]flow.Gap{}, gaps...)}, nil))
	}
	Must(t, b.PutCheck(ctx, unit, batch, "test", tested, nil), b.PutCheck(ctx, unit, batch, "ci", passed, nil),
		b.PutVerification(ctx, unit, batch, flow.Verification{Verdict: flow.Verdict{Verdict: "pass", Report: "fine", Issues: []string{}}, Files: files}, nil))
}
