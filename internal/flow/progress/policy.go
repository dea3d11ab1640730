package progress

import (
	"regexp"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow"
)

// Policy says what is decided without a person. What it does not name is left to
// people.
type Policy struct {
	All     bool        // every item is done, those that were deferred before, too
	None    bool        // no item is done
	Where   []Condition // those that meet all of them are done
	Topics  bool        // topics that nobody answered are rejected
	Reviews bool        // what waits for a review is approved: even a risky diff lands
}

// Condition is a bound on a rating.
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
		return false // not rated: nothing is known of it
	case c.Bound == ">=":
		return got >= want
	case c.Bound == "<=":
		return got <= want
	}
	return got == want
}

var conditionForm = regexp.MustCompile(`^(impact|effort)(>=|<=|=)(low|medium|high)$`)

// ParsePolicy reads a policy: "all", "none" or conditions such as
// "impact>=medium,effort<=medium" for the items, and for the rest "topics=reject"
// and "reviews", all with commas between them.
func ParsePolicy(text string) (Policy, error) {
	wrong := func(reason string) (Policy, error) {
		return Policy{}, &lockkeeper.InputError{Field: "policy", Value: text, Reason: reason,
			Next: "write all, none, or conditions such as impact>=medium,effort<=medium; and topics=reject or reviews if those are to be decided, too"}
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
			return wrong("a part of it is empty")
		default:
			return wrong("it is not known what " + word + " means")
		}
	}
	if p.All && p.None || (p.All || p.None) && p.Where != nil {
		return wrong("all, none and conditions exclude each other")
	}
	return p, nil
}

// String spells a policy so that ParsePolicy reads the same.
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

// Items reports whether the policy decides items, and with them their batches.
func (p Policy) Items() bool { return p.All || p.None || p.Where != nil }

// Decide says what becomes of an item. One that was deferred before, or is like one
// that was decided before, is deferred unless the policy takes all. One that was
// rejected is here because a person wanted it back, so it is like a new one.
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

// Matches reports whether an item is one of those that the policy names: by its ratings
// alone, whatever was decided of it, or of one like it, before.
func (p Policy) Matches(item flow.Ready) bool {
	return p.All || p.Where != nil && !slices.ContainsFunc(p.Where, func(c Condition) bool { return !c.holds(item) })
}
