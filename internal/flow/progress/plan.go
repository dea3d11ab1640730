package progress

import (
	"context"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow"
)

// MoveItem moves an item into another batch. Like every edit it withdraws the approval and
// returns warnings about the new plan.
func (b *Tracker) MoveItem(ctx context.Context, unit, item, to, by string) (warnings []string, err error) {
	return b.edit(ctx, "move item "+item, unit, by, func(p flow.Plan, todo []flow.Decided) (flow.Plan, []string, error) {
		return p.Move(todo, item, to)
	})
}

func (b *Tracker) SplitBatch(ctx context.Context, unit, batch string, items []string, by string) (warnings []string, err error) {
	return b.edit(ctx, "split batch "+batch, unit, by, func(p flow.Plan, todo []flow.Decided) (flow.Plan, []string, error) {
		return p.Split(todo, batch, items...)
	})
}

// MergeBatches moves everything of one batch (from) into another (into).
func (b *Tracker) MergeBatches(ctx context.Context, unit, into, from, by string) (warnings []string, err error) {
	return b.edit(ctx, "merge batches "+into+" and "+from, unit, by, func(p flow.Plan, todo []flow.Decided) (flow.Plan, []string, error) {
		return p.Merge(todo, into, from)
	})
}

// edit changes a plan without a started batch.
func (b *Tracker) edit(ctx context.Context, act, unit, by string, change func(flow.Plan, []flow.Decided) (flow.Plan, []string, error)) (warnings []string, err error) {
	err = b.personal(ctx, unit, by, func(u *Unit) error {
		if err := u.editable(act); err != nil {
			return err
		}
		if u.Decisions == nil {
			return refused(act+" of "+unit, "edit the source of the plan", "the flow %s has no decisions on items", b.flow.Name)
		}
		var plan flow.Plan
		if plan, warnings, err = change(*u.Plan, u.Decisions.Items); err != nil {
			return err
		}
		return b.putPlan(ctx, u, plan, by)
	})
	return warnings, err
}

// editable refuses to edit a missing plan, or one with a started batch.
func (u *Unit) editable(act string) error {
	if u.Plan == nil {
		return refused(act+" of "+u.Name, "run the phase "+u.phase, "%s is %s and has no batches", u.Name, u.status)
	}
	for _, b := range u.Batches {
		if b.Started != nil {
			return refused(act+" of "+u.Name, "let it run, or run the phase batch_plan again", "batch %s was started by %s at %s", b.ID, b.Started.By, stamp(b.Started.At))
		}
	}
	return nil
}

// SetTargets sets the files that a batch may change, in a plan without a started batch or in a
// proposed batch.
func (b *Tracker) SetTargets(ctx context.Context, unit, batch string, targets []string, by string) (warnings []string, err error) {
	err = b.personal(ctx, unit, by, func(u *Unit) error {
		is, err := u.needBatch("set targets of", batch)
		if err != nil {
			return err
		}
		plan, proposed := *u.Plan, u.proposals()
		at := slices.IndexFunc(proposed, func(p flow.Batch) bool { return p.ID == is.ID })
		if at >= 0 {
			proposed[at].WriteTargets = flow.Targets(targets)
			return b.propose(ctx, u, proposed, by)
		}
		if err := u.editable("set targets of batch " + batch); err != nil {
			return err
		}
		plan.Batches, plan.Approved = slices.Clone(plan.Batches), nil
		for i := range plan.Batches {
			if plan.Batches[i].ID == is.ID {
				plan.Batches[i].WriteTargets = flow.Targets(targets)
			}
		}
		if warnings, err = u.fits(plan); err != nil {
			return err
		}
		return b.putPlan(ctx, u, plan, by)
	})
	return warnings, err
}

// ApprovePlan approves the batches of the plan and the proposed follow-up batches.
func (b *Tracker) ApprovePlan(ctx context.Context, unit, by string) error {
	return b.personal(ctx, unit, by, func(u *Unit) error {
		if u.Plan == nil {
			return refused("approve plan "+unit, "run the phase "+u.phase, "%s is %s and has no batches", unit, u.status)
		}
		proposed := u.proposals()
		if u.Plan.Approved != nil && len(proposed) == 0 {
			return refused("approve plan "+unit, "withdraw the approval first if you want to change it", "it was approved by %s at %s", u.Plan.Approved.By, stamp(u.Plan.Approved.At))
		}
		plan := flow.Plan{Batches: append(slices.Clone(u.Plan.Batches), proposed...), Approved: &flow.Approval{By: by, At: b.time()}}
		if err := b.putPlan(ctx, u, plan, by); err != nil {
			return err
		}
		return u.docs.proposed.remove(ctx)
	})
}

// WithdrawApproval withdraws the approval of a plan without a started batch.
func (b *Tracker) WithdrawApproval(ctx context.Context, unit, by string) error {
	return b.personal(ctx, unit, by, func(u *Unit) error {
		if err := u.editable("withdraw the approval"); err != nil {
			return err
		}
		if u.Plan.Approved == nil {
			return refused("withdraw the approval of "+unit, "approve the plan when you agree with it", "it is not approved")
		}
		plan := *u.Plan
		plan.Approved = nil
		return b.putPlan(ctx, u, plan, by)
	})
}

// proposals lists the proposed batches that are not in the plan.
func (u *Unit) proposals() (list []flow.Batch) {
	if u.docs.proposed.value == nil {
		return nil
	}
	for _, p := range u.docs.proposed.value.Batches {
		if !slices.ContainsFunc(u.Plan.Batches, func(b flow.Batch) bool { return b.ID == p.ID }) {
			list = append(list, p)
		}
	}
	return list
}

func (b *Tracker) propose(ctx context.Context, u *Unit, proposed []flow.Batch, by string) error {
	if len(proposed) == 0 {
		return u.docs.proposed.remove(ctx)
	}
	if err := b.check(flow.BatchesFile, flow.Plan{Batches: append(slices.Clone(u.Plan.Batches), proposed...)}); err != nil {
		return err
	}
	return b.write(ctx, u.docs.proposed.stored, flow.Plan{Batches: proposed}, by)
}

func (b *Tracker) ApproveReview(ctx context.Context, unit, batch, by string) error {
	return b.review(ctx, unit, batch, by, flow.Review{State: Approved})
}

// ReturnReview returns a diff. An agent changes it as the comments say, and it is tested and
// verified again.
func (b *Tracker) ReturnReview(ctx context.Context, unit, batch string, comments []string, by string) error {
	if strings.TrimSpace(strings.Join(comments, "")) == "" {
		return &lockkeeper.InputError{Field: "comments", Reason: "required", Next: "say what to change"}
	}
	return b.review(ctx, unit, batch, by, flow.Review{State: Returned, Comments: comments})
}

func (b *Tracker) review(ctx context.Context, unit, batch, by string, r flow.Review) error {
	return b.personal(ctx, unit, by, func(u *Unit) error {
		is, err := u.needBatch("review", batch)
		switch {
		case err != nil:
			return err
		case is.Review != nil && is.Review.State != Wanted:
			return refused("review "+unit+"/"+batch, "list open decisions: lockkeeper decide", "it was %s by %s at %s", is.Review.State, is.Review.By, stamp(is.Review.At))
		case !is.AwaitsReview:
			return refused("review "+unit+"/"+batch, "list open decisions: lockkeeper decide", "it is %s and needs no review", is.Status)
		}
		r.Files, r.By, r.At = is.Review.Files, by, b.time()
		return b.write(ctx, is.docs.review.stored, r, by)
	})
}
