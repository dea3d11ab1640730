package progress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/documents"
)

// alike is the share of common words above which two items are similar.
const alike = 0.6

// auditItems compares the ready items of a controller with earlier decisions on its items.
func auditItems(items []flow.Ready, controller string, prior []documents.PastDecision) flow.Audit {
	audit := flow.Audit{Items: []flow.Audited{}, Dropped: []flow.Dropped{}}
	kept := map[string]string{} // id of the first item with a text, by text
	for _, it := range items {
		text := documents.Normalize(it.Description)
		if first, twice := kept[text]; twice && text != "" {
			audit.Dropped = append(audit.Dropped, flow.Dropped{ID: it.ID, Reason: "the same as " + first})
			continue
		}
		was, similar := earlier(text, controller, prior)
		if was != nil && !similar && was.Decision == documents.Rejected && was.Reenabled == nil {
			audit.Dropped = append(audit.Dropped, flow.Dropped{ID: it.ID, Reason: rejection(was)})
			continue
		}
		kept[text] = it.ID
		audited := flow.Audited{Ready: it}
		if was != nil {
			audited.Prior = &flow.Prior{Decision: flow.Defer, Description: was.Description, Similar: similar, At: was.Timestamp, Notes: was.Notes}
			if was.Decision == documents.Rejected {
				audited.Prior.Decision = flow.Reject
			}
		}
		audit.Items = append(audit.Items, audited)
	}
	return audit
}

func rejection(was *documents.PastDecision) string {
	reason := "rejected on " + was.Timestamp.UTC().Format(time.DateOnly)
	if was.Notes != "" {
		reason += fmt.Sprintf(" (%s)", was.Notes)
	}
	return reason
}

// earlier finds the last decision on the same item or, if there is no such decision, on the most
// similar item.
func earlier(text, controller string, prior []documents.PastDecision) (was *documents.PastDecision, similar bool) {
	best := alike
	var near *documents.PastDecision
	for i := range prior {
		p := &prior[i]
		if p.Controller != controller {
			continue
		}
		other := documents.Normalize(p.Description)
		if text != "" && other == text {
			if was == nil || p.Timestamp.After(was.Timestamp) {
				was = p
			}
			continue
		}
		share := common(text, other)
		if near == nil && share >= best || near != nil && cmp.Or(cmp.Compare(share, best), p.Timestamp.Compare(near.Timestamp)) > 0 {
			near, best = p, share
		}
	}
	if was == nil {
		return near, near != nil
	}
	return was, false
}

// common returns the share of words that two texts have in common.
func common(a, b string) float64 {
	words := map[string]int{}
	for w := range strings.FieldsSeq(a) {
		words[w] |= 1
	}
	for w := range strings.FieldsSeq(b) {
		words[w] |= 2
	}
	both := 0
	for _, in := range words {
		if in == 3 {
			both++
		}
	}
	return float64(both) / float64(max(len(words), 1))
}

// Audit carries out the phase audit: it compares the ready items of a unit with the decisions
// of earlier runs, and stores the result. Decisions on the same items stay.
func (b *Tracker) Audit(ctx context.Context, unit string) error {
	past, err := b.documents.PastDecisions(ctx)
	if err != nil {
		return err
	}
	err = put(ctx, b, unit, flow.AuditFile, nil, func(u *Unit) (flow.Audit, loaded[flow.Audit], error) {
		return auditItems(u.Synthesis.Items, unit, past), u.docs.audit, nil
	})
	if err != nil {
		return err
	}
	return b.Recover(ctx, unit)
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
// the item. If the batches are planned already, the item is in the next run.
func (b *Tracker) Reenable(ctx context.Context, unit, description, by string) (again bool, err error) {
	return b.mark(ctx, unit, by, func() error { return b.documents.Reenable(ctx, unit, description, by) })
}

func (b *Tracker) UndoReenable(ctx context.Context, unit, description, by string) (again bool, err error) {
	return b.mark(ctx, unit, by, func() error { return b.documents.UndoReenable(ctx, unit, description, by) })
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
		err := audit.remove(ctx)
		if changed, ok := errors.AsType[*documents.ChangedError](err); ok && changed.Is == "" {
			return nil // another process removed the file
		}
		return err
	})
	return again, err
}
