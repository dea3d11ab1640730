package run

import (
	"context"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/store"
)

// Failure is work of a flow that failed and waits for somebody to retry it.
type Failure struct {
	Item   string    `json:"item"`
	Unit   string    `json:"unit"`
	Kind   string    `json:"kind"`           // controller, screen, topic or batch
	Part   string    `json:"part,omitempty"` // the screen, topic or batch
	Phase  string    `json:"phase"`          // of the flow, in which it failed
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`

	seq uint64 // of the item
}

// Name is the unit, or the part of it that failed.
func (f Failure) Name() string { return Work{Unit: f.Unit, Part: f.Part}.Name() }

// Failures lists the work of a flow that failed and is still to be done, the first to be
// queued first.
func Failures(ctx context.Context, st store.Store, book *progress.Tracker, f flow.Flow) ([]Failure, error) {
	var items map[string][]*lockkeeper.Item
	err := st.View(ctx, func(r store.Reader) (err error) {
		items, err = OpenItems(r, f.Name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return FailuresIn(f, items, func(name string) (*progress.Unit, error) { return book.Unit(ctx, name) })
}

func rootOf(flowName string) string { return "flow/" + flowName }

// phaseNamed returns the phase of a flow that the scheduler knows by a name. Review and
// landing belong to the last phase of a batch.
func phaseNamed(f flow.Flow, scheduled string) string {
	if scheduled == progress.ReviewPhase || scheduled == progress.LandPhase {
		return f.LastOfBatch()
	}
	if phase, _, ok := f.PhaseQueued(scheduled); ok {
		return phase.Name
	}
	return scheduled
}
