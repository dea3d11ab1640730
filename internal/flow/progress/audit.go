package progress

import (
	"context"
	"errors"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/sidecar"
)

// Audit carries out the phase audit: it compares the ready items of a unit with the decisions
// of earlier runs, and stores the result.
func (b *Tracker) Audit(ctx context.Context, unit string) error {
	u, err := b.Unit(ctx, unit)
	if err != nil {
		return err
	}
	if u.Synthesis == nil {
		return refused("audit "+unit, "run the phase "+u.phase+" first", "it is %s", u.status)
	}
	past, err := b.sidecar.PastDecisions(ctx)
	if err != nil {
		return err
	}
	var prior []flow.EarlierDecision
	for _, e := range past {
		p := flow.EarlierDecision{Controller: e.Controller, Description: e.Description, Decision: flow.Defer, At: e.Timestamp, Notes: e.Notes, Reenabled: e.Reenabled != nil}
		if e.Decision == sidecar.Rejected {
			p.Decision = flow.Reject
		}
		prior = append(prior, p)
	}
	return b.PutAudit(ctx, unit, flow.AuditItems(u.Synthesis.Items, unit, prior, sidecar.Normalise), nil)
}

// A DroppedItem is a ready item that the audit dropped.
type DroppedItem struct {
	flow.Ready
	Reason string `json:"reason"`
}

// DroppedItems lists the items that the audit dropped. People can re-enable them.
func (u *Unit) DroppedItems() (list []DroppedItem) {
	if u.Audit == nil {
		return nil
	}
	for _, d := range u.Audit.Dropped {
		for _, i := range u.Synthesis.Items {
			if i.ID == d.ID {
				list = append(list, DroppedItem{i, d.Reason})
			}
		}
	}
	return list
}

// Reenable re-enables a rejected item. The result again reports whether the audit runs again with
// it. If the batches are planned already, the item is in the next run.
func (b *Tracker) Reenable(ctx context.Context, unit, description, by string) (again bool, err error) {
	return b.mark(ctx, unit, by, func() error { return b.sidecar.Reenable(ctx, unit, description, by) })
}

// UndoReenable undoes Reenable.
func (b *Tracker) UndoReenable(ctx context.Context, unit, description, by string) (again bool, err error) {
	return b.mark(ctx, unit, by, func() error { return b.sidecar.UndoReenable(ctx, unit, description, by) })
}

func (b *Tracker) mark(ctx context.Context, unit, by string, mark func() error) (again bool, err error) {
	err = b.personal(ctx, unit, by, func(u *Unit) error {
		if err := mark(); err != nil {
			return err
		}
		audit := u.docs.audit
		if again = u.Plan == nil && audit.doc != nil; !again {
			return nil
		}
		err := u.folder.Remove(ctx, audit.doc, flow.AuditFile)
		if changed := (*sidecar.ChangedError)(nil); errors.As(err, &changed) && changed.Is == "" {
			return nil // another process removed it
		}
		return err
	})
	return again, err
}
