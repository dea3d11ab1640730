package progress

import (
	"context"
	"fmt"
)

// AutoDecide makes the open decisions of a unit that a policy covers, in the name of the person
// who chose the policy, and returns them. Gaps wait for a person.
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
			err = b.RejectTopic(ctx, unit, g.Ref.Topic, "not researched ("+note+")", by)
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
			return nil, err // while items are open, no other kind is open
		}
	}
	return decided, nil
}
