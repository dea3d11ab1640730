package progress

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/documents"
)

// A Decision is a question that waits for a person.
type Decision struct {
	Ref   Ref       `json:"ref"`
	Title string    `json:"title"` // the subject, in one line
	Since time.Time `json:"since"`
	Facts []Fact    `json:"facts,omitempty"` // facts for the decision
	Same  []Ref     `json:"same,omitempty"`  // items of other units with the same words
	Frees int       `json:"frees"`           // number of pieces of work that can continue after the answer
	Left  int       `json:"left"`            // number of answers needed before that work can continue, including this one

	// Version is a hash of everything that the decision shows. An answer names the version that
	// its person saw.
	Version string `json:"version"`

	shown []Fact // the facts that Version covers
}

// A Fact is a named value that a person needs for a decision.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Waiting lists the open decisions of the units. Decisions that free the most work for the fewest
// answers come first, then those that are open longest.
func (b *Tracker) Waiting(ctx context.Context, units []string) ([]Decision, error) {
	var read []*Unit
	for _, name := range units {
		u, err := b.Unit(ctx, name)
		if err != nil {
			return nil, err
		}
		read = append(read, u)
	}
	return OpenDecisions(read), nil
}

// OpenDecisions lists the open decisions of units that were read, in the order of Waiting.
func OpenDecisions(units []*Unit) (open []Decision) {
	for _, u := range units {
		open = append(open, u.OpenDecisions()...)
	}
	return SortDecisions(open)
}

// SortDecisions sorts decisions in place as Waiting does, and links items with the same words.
func SortDecisions(open []Decision) []Decision {
	findSame(open)
	slices.SortStableFunc(open, func(a, b Decision) int {
		return cmp.Or(cmp.Compare(b.Frees*a.Left, a.Frees*b.Left), a.Since.Compare(b.Since))
	})
	return open
}

func (u *Unit) OpenDecisions() (list []Decision) {
	switch {
	case u.Excluded != nil:
		return nil
	case u.Analysis != nil && u.Extract == nil:
		list = u.topicDecisions()
	case u.Audit != nil && u.Decisions == nil:
		list = u.itemDecisions()
	}
	if u.Plan == nil {
		return list
	}
	list = append(list, u.failureDecisions()...)
	if proposed := u.proposals(); u.AwaitsReview || len(proposed) > 0 {
		list = append(list, u.planDecision(proposed))
	}
	for i := range u.Batches {
		list = append(list, u.batchDecisions(&u.Batches[i])...)
	}
	return list
}

func (u *Unit) topicDecisions() (list []Decision) {
	for _, t := range u.Topics {
		if t.State == Pending {
			list = append(list, Decision{Ref: Ref{Kind: TopicKind, Unit: u.Name, Topic: t.Slug}, Title: line(t.Prompt), Since: u.docs.analysis.since(),
				Facts: []Fact{{"prompt", t.Prompt}, {"controller", u.Analysis.Purpose}}, Frees: 1}.withVersion())
		}
	}
	return shared(list)
}

func (u *Unit) itemDecisions() (list []Decision) {
	for _, i := range u.Items {
		if i.Decision != "" {
			continue
		}
		facts := []Fact{{"description", i.Description}, {"impact", string(i.Impact)}, {"effort", string(i.Effort)}, {"rationale", i.Rationale}}
		if p := i.Prior; p != nil {
			name, value := "decided before", fmt.Sprintf("%s on %s", p.Decision, stamp(p.At))
			if p.Similar {
				name, value = "similar item decided before", value+": "+p.Description
			}
			if p.Notes != "" {
				value += " (" + p.Notes + ")"
			}
			facts = append(facts, Fact{name, value})
		}
		list = append(list, Decision{Ref: Ref{Kind: ItemKind, Unit: u.Name, Item: i.ID}, Title: line(i.Description), Since: u.docs.audit.since(), Facts: facts, Frees: 1}.withVersion())
	}
	return shared(list)
}

// shared sets Left of decisions if work continues only after all of them.
func shared(open []Decision) []Decision {
	for i := range open {
		open[i].Left = len(open)
	}
	return open
}

func (u *Unit) planDecision(proposed []flow.Batch) Decision {
	batches, doc := u.Plan.Batches, u.docs.plan.stored
	if u.Plan.Approved != nil {
		batches, doc = nil, u.docs.proposed.stored
	}
	batches = append(slices.Clone(batches), proposed...)
	g := Decision{Ref: Ref{Kind: PlanKind, Unit: u.Name}, Title: counted(len(batches), "batch", "batches") + " to approve", Since: doc.since(), Frees: len(batches), Left: 1}
	for _, b := range batches {
		g.Facts = append(g.Facts, Fact{b.ID, fmt.Sprintf("%s; items: %s; changes: %s", b.Title, orNone(b.Items), orNone(b.WriteTargets))})
	}
	for _, w := range u.Warnings {
		g.Facts = append(g.Facts, Fact{"warning", w})
	}
	return g.withVersion(definitions(batches)...)
}

func (u *Unit) batchDecisions(b *Batch) (list []Decision) {
	if b.AwaitsReview {
		var facts []Fact
		if asked := b.Asked(); len(asked) > 0 {
			facts = []Fact{{"sent back for", strings.Join(asked, "\n")}}
		}
		facts = append(facts, Fact{"summary", b.Summary()}, Fact{"files", cmp.Or(listOf(b.Review.Files, func(f flow.File) string { return f.Path }), "none")})
		if b.Verification != nil {
			facts = append(facts, Fact{"verification", b.Verification.Report})
		}
		facts = append(facts, Fact{"fix attempts", fmt.Sprint(b.Fixes())})
		list = append(list, Decision{Ref: Ref{Kind: ReviewKind, Unit: u.Name, Batch: b.ID}, Title: line(b.Title), Since: b.Review.At, Frees: 1 + u.behind(b.ID), Left: 1,
			Facts: facts}.withVersion(contents(b.Review.Files)...))
	}
	for _, g := range b.Gaps() {
		if g.Answer == "" {
			list = append(list, Decision{Ref: Ref{Kind: GapKind, Unit: u.Name, Batch: b.ID, Gap: g.Number}, Title: g.Path, Since: g.At, Left: 1,
				Facts: []Fact{{"reason", g.Reason}, {"phase", g.Phase}, {"planned by", g.Planned}, {"kept in", cmp.Or(g.Rescue, "nowhere")}}}.withVersion())
		}
	}
	return list
}

// behind counts the batches that wait for a batch, directly or indirectly.
func (u *Unit) behind(id string) (n int) {
	first := map[string]bool{id: true}
	for _, b := range u.Batches { // sorted: a batch comes after those in its After
		if !flow.IsDone(b.Status) && slices.ContainsFunc(b.After, func(a string) bool { return first[a] }) {
			first[b.ID] = true
			n++
		}
	}
	return n
}

// findSame links each item with the items of other units that have the same words, because one
// answer can be given to all of them.
func findSame(queue []Decision) {
	words := map[string][]Ref{}
	key := func(g Decision) string { return documents.Normalize(g.Facts[0].Value) }
	for _, g := range queue {
		if g.Ref.Kind == ItemKind {
			words[key(g)] = append(words[key(g)], g.Ref)
		}
	}
	for i, g := range queue {
		if g.Ref.Kind == ItemKind {
			queue[i].Same = slices.DeleteFunc(slices.Clone(words[key(g)]), func(r Ref) bool { return r == g.Ref })
			queue[i].Frees += len(queue[i].Same)
		}
	}
}

func counted(n int, one, more string) string {
	if n == 1 {
		more = one
	}
	return fmt.Sprintf("%d %s", n, more)
}

func orNone(names []string) string { return cmp.Or(list(names), "none") }

func line(text string) string {
	const enough = 100
	words := []rune(strings.Join(strings.Fields(text), " "))
	if len(words) > enough {
		return string(words[:enough-1]) + "…"
	}
	return string(words)
}
