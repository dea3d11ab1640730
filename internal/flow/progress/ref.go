package progress

import (
	"strconv"
	"strings"

	"lockkeeper"
)

type Kind string

// The kinds of a decision.
const (
	TopicKind   Kind = "topic"   // a question to research
	ItemKind    Kind = "item"    // an improvement to decide on
	PlanKind    Kind = "plan"    // batches to approve
	ReviewKind  Kind = "review"  // a diff to approve before it lands
	GapKind     Kind = "gap"     // a change that no grant covered
	FailureKind Kind = "failure" // the same failure in several batches; the run pauses
)

// A Ref identifies a decision. People can type it, and it does not change:
//
//	topic posts/pagination   item posts/i3   plan posts   review posts/b1   gap posts/b1/1   failure posts/1a2b3c4d
type Ref struct {
	Kind    Kind
	Unit    string
	Topic   string // the slug
	Item    string
	Batch   string
	Gap     int // starts at 1
	Failure string
}

// Kinds lists the kinds of decisions, in the order in which a unit reaches them.
func Kinds() []Kind { return []Kind{TopicKind, ItemKind, PlanKind, FailureKind, ReviewKind, GapKind} }

func (r Ref) String() string {
	s := string(r.Kind) + " " + r.Unit
	switch r.Kind {
	case TopicKind:
		s += "/" + r.Topic
	case ItemKind:
		s += "/" + r.Item
	case ReviewKind:
		s += "/" + r.Batch
	case GapKind:
		s += "/" + r.Batch + "/" + strconv.Itoa(r.Gap)
	case FailureKind:
		s += "/" + r.Failure
	}
	return s
}

func (r Ref) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

func (r *Ref) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRef(string(text))
	return err
}

// ParseRef parses a reference. Only the names of units contain slashes, so ParseRef starts at the
// end.
func ParseRef(text string) (Ref, error) {
	invalid := func(reason string) (Ref, error) {
		return Ref{}, &lockkeeper.InputError{Field: "reference", Value: text, Reason: reason,
			Next: "copy one from lockkeeper decide, such as topic posts/pagination, item posts/i3, plan posts, review posts/b1, gap posts/b1/1 or failure posts/1a2b3c4d"}
	}
	words := strings.Fields(text)
	if len(words) != 2 {
		return invalid("not a kind and a name")
	}
	r := Ref{Kind: Kind(words[0]), Unit: words[1]}
	cut := func(last *string) bool {
		at := strings.LastIndexByte(r.Unit, '/')
		if at < 0 {
			return false
		}
		r.Unit, *last = r.Unit[:at], r.Unit[at+1:]
		return *last != ""
	}
	whole := true
	switch r.Kind {
	case TopicKind:
		whole = cut(&r.Topic)
	case ItemKind:
		whole = cut(&r.Item)
	case PlanKind:
	case ReviewKind:
		whole = cut(&r.Batch)
	case FailureKind:
		whole = cut(&r.Failure)
	case GapKind:
		var number string
		whole = cut(&number) && cut(&r.Batch)
		n, err := strconv.Atoi(number)
		if whole && (err != nil || n < 1 || strconv.Itoa(n) != number) {
			return invalid("a gap has a number, from 1")
		}
		r.Gap = n
	default:
		return invalid("unknown kind")
	}
	if !whole || r.Unit == "" || strings.HasSuffix(r.Unit, "/") {
		return invalid("a part of the name is missing")
	}
	return r, nil
}
