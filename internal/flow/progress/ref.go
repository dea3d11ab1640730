package progress

import (
	"strconv"
	"strings"

	"lockkeeper"
)

// Kind is what a person is asked for.
type Kind string

// The kinds.
const (
	TopicKind  Kind = "topic"  // something to be researched
	ItemKind   Kind = "item"   // an improvement to decide on
	PlanKind   Kind = "plan"   // batches to look through
	ReviewKind Kind = "review" // a diff to look through before it lands
	GapKind    Kind = "gap"    // a change that no grant covered
)

// Ref names one thing that a person can be asked for, in a spelling that is short
// enough to be typed and that stays the same from one look to the next:
//
//	topic posts/pagination   item posts/i3   plan posts   review posts/b1   gap posts/b1/1
type Ref struct {
	Kind  Kind
	Unit  string
	Topic string // the slug
	Item  string
	Batch string
	Gap   int // from 1
}

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
	}
	return s
}

// MarshalText spells a reference as String does.
func (r Ref) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (r *Ref) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRef(string(text))
	return err
}

// ParseRef reads a reference as a person types it. The names of units may have
// slashes, those of what is in them have none, so it is read from its end.
func ParseRef(text string) (Ref, error) {
	wrong := func(reason string) (Ref, error) {
		return Ref{}, &lockkeeper.InputError{Field: "reference", Value: text, Reason: reason,
			Next: "copy one from the list of what waits, such as topic posts/pagination, item posts/i3, plan posts, review posts/b1 or gap posts/b1/1"}
	}
	words := strings.Fields(text)
	if len(words) != 2 {
		return wrong("not a kind and a name")
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
	case GapKind:
		var number string
		whole = cut(&number) && cut(&r.Batch)
		n, err := strconv.Atoi(number)
		if whole && (err != nil || n < 1 || strconv.Itoa(n) != number) {
			return wrong("a gap has a number, from 1")
		}
		r.Gap = n
	default:
		return wrong("there is no such kind")
	}
	if !whole || r.Unit == "" || strings.HasSuffix(r.Unit, "/") {
		return wrong("a part of the name is missing")
	}
	return r, nil
}
