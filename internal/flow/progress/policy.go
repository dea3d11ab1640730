package progress

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow"
)

// A Policy decides in place of people. People make the decisions that it does not cover.
type Policy struct {
	All     bool        // do every item, also those that were deferred before
	None    bool        // do no item
	Where   []Condition // do the items that meet all conditions
	Topics  bool        // reject open topics
	Reviews bool        // approve every review, also of risky diffs
}

// A Condition is a bound on a rating.
type Condition struct {
	Rating string // impact or effort
	Bound  string // >=, <= or =
	Level  flow.Level
}

func (c Condition) String() string { return c.Rating + c.Bound + string(c.Level) }

// levels are in rising order.
var levels = []flow.Level{flow.Low, flow.Medium, flow.High}

func (c Condition) holds(item flow.Ready) bool {
	rated := item.Impact
	if c.Rating == "effort" {
		rated = item.Effort
	}
	got, want := slices.Index(levels, rated), slices.Index(levels, c.Level)
	switch {
	case got < 0:
		return false // the item does not have this rating
	case c.Bound == ">=":
		return got >= want
	case c.Bound == "<=":
		return got <= want
	}
	return got == want
}

var conditionForm = regexp.MustCompile(`^(impact|effort)(>=|<=|=)(low|medium|high)$`)

// ParsePolicy parses a policy: words separated by commas. Items are decided by "all", "none" or
// conditions such as "impact>=medium,effort<=medium". The words "topics=reject" and "reviews"
// decide topics and reviews.
func ParsePolicy(text string) (Policy, error) {
	invalid := func(reason string) (Policy, error) {
		return Policy{}, &lockkeeper.InputError{Field: "policy", Value: text, Reason: reason,
			Next: "write all, none, or conditions such as impact>=medium,effort<=medium; add topics=reject or reviews to decide those too"}
	}
	var p Policy
	for word := range strings.SplitSeq(text, ",") {
		word = strings.ToLower(strings.Join(strings.Fields(word), ""))
		switch form := conditionForm.FindStringSubmatch(word); {
		case form != nil:
			p.Where = append(p.Where, Condition{Rating: form[1], Bound: form[2], Level: flow.Level(form[3])})
		case word == "all":
			p.All = true
		case word == "none":
			p.None = true
		case word == "topics=reject":
			p.Topics = true
		case word == "reviews":
			p.Reviews = true
		case word == "":
			return invalid("it has a stray comma")
		default:
			return invalid("unknown word " + word)
		}
	}
	if p.All && p.None || (p.All || p.None) && p.Where != nil {
		return invalid("all, none and conditions exclude each other")
	}
	return p, nil
}

// String formats a policy so that ParsePolicy returns the same policy.
func (p Policy) String() string {
	var words []string
	add := func(on bool, word string) {
		if on {
			words = append(words, word)
		}
	}
	add(p.All, "all")
	add(p.None, "none")
	for _, c := range p.Where {
		words = append(words, c.String())
	}
	add(p.Topics, "topics=reject")
	add(p.Reviews, "reviews")
	return strings.Join(words, ",")
}

// Items reports whether the policy decides on items, and so on their batches.
func (p Policy) Items() bool { return p.All || p.None || p.Where != nil }

// Decide decides on an item. If the item was deferred before or is similar to a decided one, it
// is deferred, unless the policy is All. A rejected item counts as new, because a person
// re-enabled it.
func (p Policy) Decide(item flow.Audited) flow.Decision {
	if p.All {
		return flow.Todo
	}
	known := item.Prior != nil && (item.Prior.Similar || item.Prior.Decision == flow.Defer)
	if p.None || known || slices.ContainsFunc(p.Where, func(c Condition) bool { return !c.holds(item.Ready) }) {
		return flow.Defer
	}
	return flow.Todo
}

// Matches reports whether the policy selects an item by its ratings, regardless of earlier
// decisions.
func (p Policy) Matches(item flow.Ready) bool {
	return p.All || p.Where != nil && !slices.ContainsFunc(p.Where, func(c Condition) bool { return !c.holds(item) })
}

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
			return nil, err // while items are open, no other decision of the unit is open
		}
	}
	return decided, nil
}
