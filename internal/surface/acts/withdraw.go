package acts

import (
	"context"
	"slices"

	"lockkeeper"
	"lockkeeper/internal/flow/progress"
)

// TakeBack withdraws answers that no later phase has used.
func (d *Decider) TakeBack(ctx context.Context, refs []progress.Ref) (Verdict, error) {
	var v Verdict
	if err := d.checkNamed(refs); err != nil {
		return v, err
	}
	for _, r := range refs {
		what, err := d.takeBack(ctx, r)
		v.take(err, r, what)
	}
	return d.finish(ctx, v)
}

func (d *Decider) takeBack(ctx context.Context, r progress.Ref) (what string, err error) {
	u, err := d.Unit(ctx, r.Unit)
	if err != nil {
		return "", err
	}
	by := d.By.Name
	switch r.Kind {
	case progress.TopicKind:
		asked, err := d.Book.ByAPI(ctx, u)
		if err == nil && slices.Contains(asked, r.Topic) {
			return "waits for people again", d.Book.WithdrawAPI(ctx, r.Unit, r.Topic, by)
		}
		if err != nil {
			return "", err
		}
		return "waits for an answer again", d.Book.ReopenTopic(ctx, r.Unit, r.Topic, by)
	case progress.ItemKind:
		item, ok := u.Item(r.Item)
		if ok && item.Decision == "" {
			return "", &lockkeeper.RefusedError{Act: "undo " + r.String(), Reason: "nobody has decided on it", Next: d.Command("decide", "todo", r.String())}
		}
		what = becomes("")
		if item.Added {
			what = "is gone"
		}
		return what, d.Book.Decide(ctx, r.Unit, by, progress.Choice{Item: r.Item, Was: item.Decision})
	case progress.PlanKind:
		return "waits for approval again", d.Book.WithdrawApproval(ctx, r.Unit, by)
	case progress.GapKind:
		return "is open again", d.Book.ReopenGap(ctx, r.Unit, r.Batch, r.Gap, by)
	}
	return "", &lockkeeper.RefusedError{Act: "undo " + r.String(), Reason: "whoever waited for a review goes on with it at once", Next: d.Command("undo", r.Unit+"/"+r.Batch) + ", once it landed"}
}
