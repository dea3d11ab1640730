package largerun

import (
	"maps"
	"testing"

	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/project/projecttest"
	"lockkeeper/internal/surface/view"
	"lockkeeper/rescue"
)

func TestMain(m *testing.M) { projecttest.Main(m) }

// Viewers read what the options say, and a Change changes every running item.
func TestRun(t *testing.T) {
	o := Options{Units: 60, Calls: 300, Failures: 15, Landings: 12, Plans: 10, Topics: 3, Reviews: 2, Running: 5, Waiting: 4, Gaps: 30, Rescued: 8}
	r := New(t, o)
	ctx := t.Context()
	board, err := r.View.Board(ctx, "")
	must(t, err)
	for _, u := range board.Units {
		if u.Unread != "" || len(u.Malformed) > 0 {
			t.Errorf("%s: %s %v", u.Name, u.Unread, u.Malformed)
		}
	}
	if len(board.Units) != o.Units || board.Statuses["error"] != o.Failures {
		t.Errorf("%d units: %v", len(board.Units), board.Statuses)
	}
	calls, err := conduct.Journal(r.App).Calls("controllers")
	must(t, err)
	if len(calls) != o.Calls {
		t.Errorf("%d calls", len(calls))
	}
	queue, err := r.View.Decisions(ctx, "")
	must(t, err)
	open := map[progress.Kind]int{}
	for _, d := range queue.Open {
		open[d.Ref.Kind]++
	}
	undecided := o.Units - o.Failures - o.Landings - o.Plans - o.Topics - o.Reviews - o.Running - o.Waiting
	if expected := map[progress.Kind]int{progress.GapKind: o.Gaps, progress.PlanKind: o.Plans, progress.TopicKind: o.Topics, progress.ReviewKind: o.Reviews, progress.ItemKind: undecided * len(improvements)}; !maps.Equal(open, expected) {
		t.Errorf("decisions: %v, expected %v", open, expected)
	}
	shelf, err := r.View.Rescue(ctx)
	must(t, err)
	if expected := map[string]int{rescue.Gap: o.Gaps, rescue.Unlanded: o.Rescued}; !maps.Equal(shelf.Kinds, expected) {
		t.Errorf("rescued: %v, expected %v", shelf.Kinds, expected)
	}
	before := r.item(r.running[0])
	if before.State != "running" || before.Log == nil || len(before.Problems) > 0 {
		t.Errorf("a running item: %+v", before)
	}
	r.Change()
	if after := r.item(r.running[0]); after.Why.Item.Note == before.Why.Item.Note {
		t.Errorf("the note is still %q", after.Why.Item.Note)
	}
}

func (r *Run) item(w *working) *view.Item {
	r.t.Helper()
	it, err := r.View.Item(r.t.Context(), w.item)
	must(r.t, err)
	return it
}
