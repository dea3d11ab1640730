package acts

import (
	"context"
	"slices"

	"lockkeeper"
	"lockkeeper/internal/flow/progress"
)

// Withdraw withdraws answers that no later phase has used.
func (d *Decider) Withdraw(ctx context.Context, refs []progress.Ref) (Verdict, error) {
	var v Verdict
	if err := d.checkNamed(refs); err != nil {
		return v, err
	}
	for _, r := range refs {
		what, err := d.withdraw(ctx, r)
		v.take(err, r, what)
	}
	return d.finish(ctx, v)
}

func (d *Decider) withdraw(ctx context.Context, r progress.Ref) (what string, err error) {
	u, err := d.Unit(ctx, r.Unit)
	if err != nil {
		return "", err
	}
	by := d.By.Name
	switch r.Kind {
	case progress.TopicKind:
		asked, err := d.Tracker.ByAPI(ctx, u)
		if err == nil && slices.Contains(asked, r.Topic) {
			return "waits for people again", d.Tracker.WithdrawAPI(ctx, r.Unit, r.Topic, by)
		}
		if err != nil {
			return "", err
		}
		return "waits for an answer again", d.Tracker.ReopenTopic(ctx, r.Unit, r.Topic, by)
	case progress.ItemKind:
		item, ok := u.Item(r.Item)
		if ok && item.Decision == "" {
			return "", &lockkeeper.RefusedError{Act: "undo " + r.String(), Reason: "it has no decision", Next: d.Command("decide", "todo", r.String())}
		}
		what = becomes("")
		if item.Added {
			what = "is gone"
		}
		return what, d.Tracker.Decide(ctx, r.Unit, by, progress.Choice{Item: r.Item, Was: item.Decision})
	case progress.PlanKind:
		return "waits for approval again", d.Tracker.WithdrawApproval(ctx, r.Unit, by)
	case progress.GapKind:
		return "is open again", d.Tracker.ReopenGap(ctx, r.Unit, r.Batch, r.Gap, by)
	}
	return "", &lockkeeper.RefusedError{Act: "undo " + r.String(), Reason: "a review takes effect at once", Next: d.Command("undo", r.Unit+"/"+r.Batch) + ", once it landed"}
}
