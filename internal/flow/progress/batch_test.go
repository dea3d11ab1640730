package progress

import (
	"testing"

	"lockkeeper/internal/flow"
)

// A reviewer can return a diff in a flow whose check names no status for fixes, and in a flow
// without checks.
func TestReturnedReviewNeedsNoFixingStatus(t *testing.T) {
	apply := flow.Phase{Name: "apply", Step: flow.Applying, Status: "applying", Unit: flow.BatchUnit, Output: flow.ApplyFile}
	lint := flow.Phase{Name: "lint", Step: flow.Checking, Status: "linting", Unit: flow.BatchUnit, Output: "lint.json"}
	def := flow.Batch{ID: "b1"}
	docs := &batchDocs{checks: map[string]loaded[flow.Checked]{lint.Output: {value: &flow.Checked{State: flow.CheckPassed}}}}
	docs.applied.value = &flow.Applied{Batch: flow.Digest(def)}
	docs.review.value = &flow.Review{State: Returned}
	u := &Unit{docs: unitDocs{batches: map[string]*batchDocs{def.ID: docs}}}
	for _, want := range []flow.Phase{lint, apply} {
		f := flow.Flow{Phases: []flow.Phase{apply, lint}}
		if want.Name == apply.Name {
			f.Phases = f.Phases[:1]
		}
		if b := u.batch(f, def, true); b.Next != want.Name || b.Status != want.Status {
			t.Errorf("the next phase is %q with the status %q, want %s and %s", b.Next, b.Status, want.Name, want.Status)
		}
	}
}
