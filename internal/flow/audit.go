package flow

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// An EarlierDecision is a decision of an earlier run.
type EarlierDecision struct {
	Controller  string
	Description string
	Decision    Decision // Defer or Reject
	At          time.Time
	Notes       string
	Reenabled   bool // a person re-enabled the rejected item
}

// alike is the share of common words above which two items are similar.
const alike = 0.6

// AuditItems compares the ready items of a controller with earlier decisions on its items.
// Descriptions are equal if normalise makes them equal.
func AuditItems(items []Ready, controller string, prior []EarlierDecision, normalise func(string) string) Audit {
	audit := Audit{Items: []Audited{}, Dropped: []Dropped{}}
	kept := map[string]string{} // text to id
	for _, it := range items {
		text := normalise(it.Description)
		if first, twice := kept[text]; twice && text != "" {
			audit.Dropped = append(audit.Dropped, Dropped{it.ID, "the same as " + first})
			continue
		}
		was, similar := earlier(text, controller, prior, normalise)
		if was != nil && !similar && was.Decision == Reject && !was.Reenabled {
			audit.Dropped = append(audit.Dropped, Dropped{it.ID, rejection(was)})
			continue
		}
		kept[text] = it.ID
		audited := Audited{Ready: it}
		if was != nil {
			audited.Prior = &Prior{Decision: was.Decision, Description: was.Description, Similar: similar, At: was.At, Notes: was.Notes}
		}
		audit.Items = append(audit.Items, audited)
	}
	return audit
}

func rejection(was *EarlierDecision) string {
	reason := "rejected on " + was.At.UTC().Format(time.DateOnly)
	if was.Notes != "" {
		reason += fmt.Sprintf(" (%s)", was.Notes)
	}
	return reason
}

// earlier finds the last decision on the same item or, if there is no such decision, on the most
// similar item.
func earlier(text, controller string, prior []EarlierDecision, normalise func(string) string) (was *EarlierDecision, similar bool) {
	best := alike
	var near *EarlierDecision
	for i := range prior {
		p := &prior[i]
		if p.Controller != controller {
			continue
		}
		other := normalise(p.Description)
		if text != "" && other == text {
			if was == nil || p.At.After(was.At) {
				was = p
			}
			continue
		}
		share := common(text, other)
		if near == nil && share >= best || near != nil && cmp.Or(cmp.Compare(share, best), p.At.Compare(near.At)) > 0 {
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
