package run

import (
	"context"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/store"
)

// A Failure is failed work of a flow that waits until a person retries it.
type Failure struct {
	Item   string    `json:"item"`
	Unit   string    `json:"unit"`
	Kind   string    `json:"kind"`           // controller, screen, topic or batch
	Part   string    `json:"part,omitempty"` // the screen, topic or batch
	Phase  string    `json:"phase"`          // the phase of the flow in which the work failed
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`

	seq uint64 // the item's sequence number
}

// Name returns the name of the unit, or of the part of it that failed.
func (f Failure) Name() string { return Work{Unit: f.Unit, Part: f.Part}.Name() }

// Failures lists the work of a flow that failed and is still due, in the order in which it was
// queued.
func Failures(ctx context.Context, st store.Store, t *progress.Tracker, f flow.Flow) ([]Failure, error) {
	var items map[string][]*lockkeeper.Item
	err := st.View(ctx, func(r store.Reader) (err error) {
		items, err = OpenItems(r, f.Name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return FailuresIn(f, items, func(name string) (*progress.Unit, error) { return t.Unit(ctx, name) })
}

// phaseNamed returns the phase of a flow for a phase name of the scheduler. Review and landing
// belong to the last phase of a batch.
func phaseNamed(f flow.Flow, scheduled string) string {
	if scheduled == progress.ReviewPhase || scheduled == progress.LandPhase {
		return f.LastOfBatch()
	}
	if phase, _, ok := f.PhaseQueued(scheduled); ok {
		return phase.Name
	}
	return scheduled
}
