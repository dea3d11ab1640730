package progress

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/documents"
)

// An Item is an improvement with its decision. Items of one unit with the same words are one
// item.
type Item struct {
	flow.Audited
	Decision flow.Decision `json:"decision,omitempty"` // empty if open
	By       string        `json:"by,omitempty"`
	At       time.Time     `json:"at,omitzero"`
	Notes    string        `json:"notes,omitempty"`
	Added    bool          `json:"added,omitempty"` // a person added the item
}

// A Choice is a decision on one item. Was is the decision that the person saw, empty for an
// open item. If it has changed, the choice is refused. An empty Decision undoes the decision;
// an item that a person added is then removed.
type Choice struct {
	Item     string
	Was      flow.Decision
	Decision flow.Decision
	Notes    string
}

// Decide stores decisions on items of a unit, all of them or none, until its batches are planned.
// After the last decision the unit continues, and later runs know the deferred and rejected
// items.
func (b *Tracker) Decide(ctx context.Context, unit, by string, choices ...Choice) error {
	return b.personal(ctx, unit, by, func(u *Unit) error {
		if err := u.undecided("decide on " + unit); err != nil {
			return err
		}
		for _, c := range choices {
			if err := u.choose(c, by, b.time()); err != nil {
				return err
			}
		}
		return b.store(ctx, u, by)
	})
}

// AddItem adds an item with the decision TODO and returns its id.
func (b *Tracker) AddItem(ctx context.Context, unit string, item flow.Ready, by string) (id string, err error) {
	if documents.Normalize(item.Description) == "" {
		return "", &lockkeeper.InputError{Field: "description", Value: item.Description, Reason: "no words in it", Next: "describe the change"}
	}
	for _, rating := range []*flow.Level{&item.Impact, &item.Effort} {
		if *rating == "" {
			*rating = flow.Medium
		}
		if !slices.Contains(levels, *rating) {
			return "", &lockkeeper.InputError{Field: "rating", Value: string(*rating), Reason: "unknown", Next: "use low, medium or high"}
		}
	}
	err = b.personal(ctx, unit, by, func(u *Unit) error {
		if err := u.undecided("add an item to " + unit); err != nil {
			return err
		}
		for _, i := range u.Items {
			if documents.Normalize(i.Description) == documents.Normalize(item.Description) {
				return refused("add an item to "+unit, "decide on that item", "item %s/%s has the same description", unit, i.ID)
			}
		}
		for n := 1; ; n++ {
			item.ID = "a" + strconv.Itoa(n)
			if _, taken := u.Item(item.ID); !taken {
				break
			}
		}
		id = item.ID
		u.Items = append(u.Items, Item{Audited: flow.Audited{Ready: item}, Decision: flow.Todo, By: by, At: b.time(), Added: true})
		return b.store(ctx, u, by)
	})
	return id, err
}

// undecided refuses an act on items before the audit and after the plan.
func (u *Unit) undecided(act string) error {
	switch {
	case u.Audit == nil:
		return refused(act, "wait until it is audited", "%s is %s and has no items to decide on", u.Name, u.status)
	case u.Plan != nil:
		return refused(act, "run the phase batch_plan again", "its batches were planned at %s", stamp(u.docs.plan.since()))
	}
	return nil
}

func (u *Unit) choose(c Choice, by string, at time.Time) error {
	act := fmt.Sprintf("decide on item %s/%s", u.Name, c.Item)
	if c.Decision != "" && !slices.Contains([]flow.Decision{flow.Todo, flow.Defer, flow.Reject}, c.Decision) {
		return &lockkeeper.InputError{Field: "decision", Value: string(c.Decision), Reason: "unknown", Next: "use TODO, DEFER or REJECT"}
	}
	n := slices.IndexFunc(u.Items, func(i Item) bool { return i.ID == c.Item })
	if n < 0 {
		return &lockkeeper.InputError{Field: "item", Value: c.Item, Reason: u.Name + " has no such item", Next: "use one of " + listOf(u.Items, func(i Item) string { return i.ID })}
	}
	item := &u.Items[n]
	switch {
	case item.Decision == c.Decision && item.Notes == c.Notes:
		return nil // the same decision is stored
	case item.Decision != c.Was && item.Decision == "":
		return refused(act, "decide again, without --was", "it was %s when you read it, and was reset since", c.Was)
	case item.Decision != c.Was:
		return refused(act, "name the present decision: --was "+string(item.Decision), "it was decided as %s by %s at %s", item.Decision, item.By, stamp(item.At))
	case c.Decision == "" && item.Added:
		u.Items = slices.Delete(u.Items, n, n+1)
	case c.Decision == "":
		item.Decision, item.By, item.At, item.Notes = "", "", time.Time{}, ""
	default:
		item.Decision, item.By, item.At, item.Notes = c.Decision, by, at, c.Notes
	}
	return nil
}

// store stores the decisions as a draft, and applies it.
func (b *Tracker) store(ctx context.Context, u *Unit, by string) error {
	if err := b.write(ctx, u.docs.draft.stored, u.verdicts(), by); err != nil {
		return err
	}
	u, err := b.Unit(ctx, u.Name)
	if err != nil {
		return err
	}
	if err := b.applyDraft(ctx, u); err != nil {
		return fmt.Errorf("the decisions are stored in the draft, but %s cannot continue yet: %w", u.Name, err)
	}
	return nil
}

// NeedsRecovery reports whether every item is decided but the unit does not continue, because a
// process died or could not write. Recover repairs this.
func (u *Unit) NeedsRecovery() bool {
	return u.Audit != nil && u.Decisions == nil && len(u.Items) > 0 && u.Open() == 0
}

// Recover completes the decisions that a dead process or a new audit left incomplete. Otherwise it
// changes nothing.
func (b *Tracker) Recover(ctx context.Context, unit string) error {
	return b.act(ctx, unit, func(u *Unit) error {
		if u.Plan != nil && len(u.proposals()) == 0 {
			if err := u.docs.proposed.remove(ctx); err != nil {
				return err
			}
		}
		return b.applyDraft(ctx, u)
	})
}

// applyDraft moves the decisions of a draft into decisions.json. It removes the draft last, so
// that after a crash every step can be repeated.
func (b *Tracker) applyDraft(ctx context.Context, u *Unit) error {
	p := u.docs
	if u.Audit == nil || u.Decisions != nil || p.draft.value == nil && p.decisions.value == nil {
		return nil
	}
	decided, by := u.verdicts(), engine
	if len(decided.Items) > 0 {
		by = slices.MaxFunc(decided.Items, func(a, b flow.Decided) int { return a.At.Compare(b.At) }).By
	}
	if u.Open() > 0 {
		if p.draft.value == nil { // there is no draft if a new audit added items
			if err := b.write(ctx, p.draft.stored, decided, by); err != nil {
				return err
			}
		}
		if p.decisions.doc == nil {
			return nil // no decision was stored for later runs yet
		}
		if err := b.tellLaterRuns(ctx, u); err != nil {
			return err
		}
		return p.decisions.remove(ctx)
	}
	if err := b.check(flow.DecisionsFile, decided); err != nil {
		return err
	}
	if err := b.write(ctx, p.decisions.stored, decided, by); err != nil {
		return err
	}
	if err := b.tellLaterRuns(ctx, u); err != nil {
		return err
	}
	return p.draft.remove(ctx)
}

// tellLaterRuns stores each item's decision for later runs. While an item is open, it restores
// the decision that was stored before this run.
func (b *Tracker) tellLaterRuns(ctx context.Context, u *Unit) error {
	known, err := b.documents.PastDecisions(ctx)
	if err != nil {
		return err
	}
	var record, forget []documents.PastDecision
	restore := func(item Item) {
		at := slices.IndexFunc(known, func(e documents.PastDecision) bool {
			return e.Controller == u.Name && documents.Normalize(e.Description) == documents.Normalize(item.Description)
		})
		switch before := item.before(u.Name); {
		case at < 0 || before != nil && known[at].Timestamp.Equal(before.Timestamp):
		case before != nil:
			record = append(record, *before)
		default:
			forget = append(forget, known[at])
		}
	}
	for _, item := range u.Items {
		entry := documents.PastDecision{Description: item.Description, Controller: u.Name, Timestamp: item.At, Notes: item.Notes, By: item.By}
		switch item.Decision {
		case flow.Defer:
			entry.Decision = documents.Deferred
		case flow.Reject:
			entry.Decision = documents.Rejected
		}
		if u.Open() == 0 && entry.Decision != "" {
			record = append(record, entry)
		} else {
			restore(item)
		}
	}
	if last := u.docs.decisions.value; last != nil {
		for _, d := range last.Items { // an item that a person added is removed when its decision is undone
			if _, still := u.Item(d.ID); d.Added && !still {
				restore(Item{Audited: flow.Audited{Ready: d.Ready}})
			}
		}
	}
	if err := b.documents.Record(ctx, record...); err != nil {
		return err
	}
	return b.documents.Forget(ctx, forget...)
}

// before returns the decision of an earlier run at the time of the audit, or nil if there was
// none.
func (i Item) before(unit string) *documents.PastDecision {
	if i.Prior == nil || i.Prior.Similar {
		return nil
	}
	e := &documents.PastDecision{Description: i.Prior.Description, Controller: unit, Decision: documents.Deferred, Timestamp: i.Prior.At, Notes: i.Prior.Notes}
	if i.Prior.Decision == flow.Reject { // a person had enabled the item again
		e.Decision, e.Reenabled = documents.Rejected, &documents.Mark{By: engine, At: i.Prior.At}
	}
	return e
}

func list(names []string) string { return strings.Join(names, ", ") }

// listOf joins the names of values for a message.
func listOf[T any](values []T, name func(T) string) string {
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = name(v)
	}
	return list(names)
}
