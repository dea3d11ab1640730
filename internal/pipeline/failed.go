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
}

// Name is the unit, or the part of it that failed.
func (f Failure) Name() string { return due{unit: f.Unit, batch: f.Part}.workflow() }

// Failures lists the work of a flow that failed and is still to be done, the first to be
// queued first.
func Failures(ctx context.Context, store lockkeeper.Store, book *dossier.Book, flowName string) ([]Failure, error) {
	failed, items, err := failures(ctx, store, flowName)
	units := map[string]*dossier.Unit{}
	current := []Failure{}
	for i, f := range failed {
		u := units[f.Unit]
		if u == nil {
			if u, err = book.Unit(ctx, f.Unit); err != nil {
				return nil, err
			}
			units[f.Unit] = u
		}
		if isCurrent(u, items[i], due{unit: f.Unit, kind: f.Kind, batch: f.Part}) {
			current = append(current, f)
		}
	}
	return current, err
}

// failures lists all that is in the error state.
func failures(ctx context.Context, store lockkeeper.Store, flowName string) (list []Failure, items []*lockkeeper.Item, err error) {
	const page = 1_000
	err = store.View(ctx, func(r lockkeeper.Reader) error {
		list, items = nil, nil
		for after := uint64(0); ; {
			some, err := r.Items(lockkeeper.ItemQuery{After: after, Status: lockkeeper.ItemError, Limit: page})
			if err != nil {
				return err
			}
			for _, it := range some {
				after = it.Seq
				d, err := workOf(it)
				if it.Root != rootOf(flowName) || err != nil || it.Failure == nil {
					continue // somebody else's
				}
				list = append(list, Failure{Item: it.ID, Unit: d.unit, Kind: d.kind, Part: d.batch, Phase: phaseOf(it.Failure.Phase), Reason: it.Failure.Reason, At: it.CompletedAt})
				items = append(items, it)
			}
			if len(some) < page {
				return nil
			}
		}
	})
	return list, items, err
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
