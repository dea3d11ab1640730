package progress

import (
	"context"
	"fmt"
)

// AutoDecide does what a policy says with all that waits in a unit, in the name of
// whoever chose the policy, and tells what it decided. Gaps wait for a person.
func (b *Tracker) AutoDecide(ctx context.Context, unit string, p Policy, by string) (decided []Ref, err error) {
	u, err := b.Unit(ctx, unit)
	if err != nil {
		return nil, err
	}
	note := "by the policy " + p.String()
	var choices []Choice
	for _, g := range u.OpenDecisions() {
		switch {
		case g.Ref.Kind == TopicKind && p.Topics:
			err = b.RejectTopic(ctx, unit, g.Ref.Topic, "nobody is there to research it ("+note+")", by)
		case g.Ref.Kind == ItemKind && p.Items():
			item, _ := u.Item(g.Ref.Item)
			choices = append(choices, Choice{Item: item.ID, Decision: p.Decide(item.Audited), Notes: note})
		case g.Ref.Kind == PlanKind && p.Items():
			err = b.ApprovePlan(ctx, unit, by)
		case g.Ref.Kind == ReviewKind && p.Reviews:
			err = b.ApproveReview(ctx, unit, g.Ref.Batch, by)
		default:
			continue
		}
		if err != nil {
			return decided, fmt.Errorf("%s: %w", g.Ref, err)
		}
		decided = append(decided, g.Ref)
	}
	if len(choices) > 0 {
		if err := b.Decide(ctx, unit, by, choices...); err != nil {
			return nil, err // only items wait while items do
		}
	}
	return decided, nil
}
