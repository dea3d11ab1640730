package progress

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow"
)

// A version is a hash of everything that a decision shows, followed by a short hash of each part.
// The short hashes show later which parts changed.
const (
	wholeDigits = 16
	partDigits  = 4
)

// withVersion sets the version of a decision from its facts and from details that the facts do
// not show.
func (g Decision) withVersion(behind ...Fact) Decision {
	g.shown = append(append([]Fact{{"title", g.Title}}, g.Facts...), behind...)
	whole := sha256.New()
	parts := ""
	for _, f := range g.shown {
		sum := f.sum()
		whole.Write(sum[:])
		parts += hex.EncodeToString(sum[:])[:partDigits]
	}
	g.Version = hex.EncodeToString(whole.Sum(nil))[:wholeDigits] + parts
	return g
}

// sum returns the hash of a fact. Names contain no zero byte.
func (f Fact) sum() [sha256.Size]byte { return sha256.Sum256([]byte(f.Name + "\x00" + f.Value)) }

// A StaleError refuses an answer because the decision changed since the person saw it.
type StaleError struct {
	Ref     Ref
	Seen    string    // the version that the person saw
	Now     *Decision // the current decision; nil: the decision is no longer open
	Changed []Fact    // the facts that the person did not see
	Became  string    // what became of a decision that is no longer open
}

func (e *StaleError) Error() string {
	what := e.Became
	if e.Now != nil {
		var names []string
		for _, f := range e.Changed {
			names = append(names, f.Name+" is now: "+line(f.Value))
		}
		what = "it has changed"
		if len(names) > 0 {
			what += ": " + strings.Join(names, "; ")
		} else if len(e.Seen) > wholeDigits+partDigits*len(e.Now.shown) {
			what += ": something you saw was removed"
		}
	}
	return lockkeeper.JoinNext(fmt.Sprintf("%s is not what you saw: %s", e.Ref, what), e.NextStep())
}

func (e *StaleError) NextStep() string { return "lockkeeper decide show " + e.Ref.String() }

func (e *StaleError) Code() lockkeeper.Code { return lockkeeper.CodeRefused }

// IfUnchanged returns a tracker for one act of a person who saw these versions. If one of them
// has changed, the act is refused with *StaleError and changes nothing.
func (b *Tracker) IfUnchanged(seen map[Ref]string) *Tracker {
	if len(seen) == 0 {
		return b
	}
	careful := *b
	careful.seen = seen
	return &careful
}

// checkSeen compares the versions that a person saw with the present ones.
func (b *Tracker) checkSeen(u *Unit) error {
	if len(b.seen) == 0 {
		return nil
	}
	open := u.OpenDecisions()
	refs := slices.SortedFunc(maps.Keys(b.seen), func(a, b Ref) int { return strings.Compare(a.String(), b.String()) })
	for _, ref := range refs {
		if ref.Unit != u.Name {
			continue
		}
		seen := b.seen[ref]
		at := slices.IndexFunc(open, func(g Decision) bool { return g.Ref == ref })
		switch {
		case at < 0:
			return &StaleError{Ref: ref, Seen: seen, Became: u.became(ref)}
		case open[at].Version != seen:
			return &StaleError{Ref: ref, Seen: seen, Now: &open[at], Changed: open[at].changedSince(seen)}
		}
	}
	return nil
}

// changedSince lists the facts that are not in a version.
func (g Decision) changedSince(seen string) []Fact {
	list := []Fact{}
	known := map[string]bool{}
	for at := wholeDigits; at+partDigits <= len(seen); at += partDigits {
		known[seen[at:at+partDigits]] = true
	}
	for _, f := range g.shown {
		if sum := f.sum(); !known[hex.EncodeToString(sum[:])[:partDigits]] {
			list = append(list, f)
		}
	}
	return list
}

// became returns the outcome of a decision that is not open.
func (u *Unit) became(ref Ref) string {
	by := func(what, name string) string {
		if name == "" {
			return "it is " + what
		}
		return "it is " + what + ", by " + name
	}
	batch, known := u.Batch(ref.Batch)
	switch {
	case ref.Kind == TopicKind:
		for _, t := range u.Topics {
			if t.Slug == ref.Topic {
				return by(string(t.State), t.By)
			}
		}
	case ref.Kind == ItemKind:
		if item, ok := u.Item(ref.Item); ok && item.Decision != "" {
			return by(string(item.Decision), item.By)
		}
	case ref.Kind == PlanKind && u.Plan != nil && u.Plan.Approved != nil:
		return by("approved", u.Plan.Approved.By)
	case ref.Kind == ReviewKind && known && batch.Review != nil:
		return by(batch.Review.State, batch.Review.By)
	case ref.Kind == FailureKind:
		if f, ok := u.CommonFailure(ref.Failure); ok && f.Answer != "" {
			return by("answered: "+f.Answer, f.By)
		}
	case ref.Kind == ReviewKind && known:
		return "the batch is " + batch.Status
	case ref.Kind == GapKind && known:
		for _, g := range batch.Gaps() {
			if g.Number == ref.Gap && g.Answer == Dismissed {
				return by(Dismissed, g.By)
			} else if g.Number == ref.Gap && g.Answer != "" {
				return by("followed up by batch "+g.Answer, g.By)
			}
		}
	}
	return "it is no longer open, and " + u.Name + " is " + u.status
}

// definitions returns the digests of batches, because the plan shows only one line for each.
func definitions(batches []flow.Batch) (list []Fact) {
	for _, b := range batches {
		list = append(list, Fact{"definition of " + b.ID, flow.Digest(b)[:wholeDigits]})
	}
	return list
}

func contents(files []flow.File) (list []Fact) {
	for _, f := range files {
		list = append(list, Fact{f.Path, fmt.Sprintf("%s, which was %s", f.New, f.Old)})
	}
	return list
}
