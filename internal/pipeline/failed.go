package pipeline

import (
	"context"
	"time"

	"lockkeeper"
	"lockkeeper/internal/dossier"
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
func Failures(ctx context.Context, store lockkeeper.Store, book *dossier.Book, flowName string) ([]Failure, error) {
	var items map[string][]*lockkeeper.Item
	err := store.View(ctx, func(r lockkeeper.Reader) (err error) {
		items, err = OpenItems(r, flowName)
		return err
	})
	if err != nil {
		return nil, err
	}
	return FailuresIn(items, func(name string) (*dossier.Unit, error) { return book.Unit(ctx, name) })
}

func rootOf(flowName string) string { return "flow/" + flowName }

// phaseOf is the phase of a flow that one of the scheduler belongs to.
func phaseOf(scheduled string) string {
	switch scheduled {
	case "fix":
		return "test"
	case "ci_fix":
		return "ci"
	case dossier.ReviewPhase, dossier.LandPhase:
		return "verify"
	}
	return scheduled
}
