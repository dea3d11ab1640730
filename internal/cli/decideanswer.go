package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/dossier"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/sidecar"
)

// saying is what comes with an answer.
type saying struct {
	notes []string
	was   string // what an item was decided to be, if that is to change
	only  bool   // items of other units with the same words stay as they are
	text  string // of an answer that was found elsewhere
}

func (s saying) note() string { return strings.TrimSpace(strings.Join(s.notes, "\n")) }

// answer is one thing that can be said to what is of a kind.
type answer struct {
	word  string // the command
	key   byte   // in a walk; 0: there is none
	kind  dossier.Kind
	means string
	asks  string // for a note without which it is refused; empty: none is needed
	give  func(d *decider, ctx context.Context, refs []dossier.Ref, s saying, v *verdict)
}

// answers are all that can be said. Commands and the walk are made from them.
func answers() []answer {
	return []answer{
		{"todo", 't', dossier.ItemKind, "do it", "", decideAs(flow.Todo)},
		{"defer", 'd', dossier.ItemKind, "later: it comes up again", "", decideAs(flow.Defer)},
		{"reject", 'r', dossier.ItemKind, "never: it does not come up again", "", decideAs(flow.Reject)},
		{"answer", 0, dossier.TopicKind, "what was found elsewhere", "", each(func(d *decider, ctx context.Context, r dossier.Ref, s saying) (string, error) {
			return "is answered", d.book.Answer(ctx, r.Unit, r.Topic, sidecar.MethodPaste, s.text, d.by.Name)
		})},
		{"reject", 'r', dossier.TopicKind, "it needs no answer", "why it needs no answer", each(func(d *decider, ctx context.Context, r dossier.Ref, s saying) (string, error) {
			return "is rejected", d.book.RejectTopic(ctx, r.Unit, r.Topic, s.note(), d.by.Name)
		})},
		{"api", 'a', dossier.TopicKind, "ask the Messages API", "", each((*decider).askAPI)},
		{"approve", 'a', dossier.PlanKind, "the batches may be applied", "", each(func(d *decider, ctx context.Context, r dossier.Ref, _ saying) (string, error) {
			return "is approved", d.book.ApprovePlan(ctx, r.Unit, d.by.Name)
		})},
		{"approve", 'a', dossier.ReviewKind, "it lands as it was shown", "", each(func(d *decider, ctx context.Context, r dossier.Ref, _ saying) (string, error) {
			return "is approved: it lands as it was shown", d.book.ApproveReview(ctx, r.Unit, r.Batch, d.by.Name)
		})},
		{"return", 'b', dossier.ReviewKind, "back: it is done anew, with your comment in mind", "what should be otherwise", each(func(d *decider, ctx context.Context, r dossier.Ref, s saying) (string, error) {
			return "is returned: it is done anew", d.book.ReturnReview(ctx, r.Unit, r.Batch, s.notes, d.by.Name)
		})},
		{"follow-up", 'f', dossier.GapKind, "a batch of its own makes the change", "", each(func(d *decider, ctx context.Context, r dossier.Ref, _ saying) (string, error) {
			change, err := d.changeOf(ctx, r)
			if err != nil {
				return "", err
			}
			id, err := d.book.FollowUpGap(ctx, r.Unit, r.Batch, r.Gap, change, d.by.Name)
			return "is followed up by batch " + id + ", which waits for approval: plan " + r.Unit, err
		})},
		{"dismiss", 'd', dossier.GapKind, "nothing is to be made of it", "", each(func(d *decider, ctx context.Context, r dossier.Ref, _ saying) (string, error) {
			return "is dismissed", d.book.DismissGap(ctx, r.Unit, r.Batch, r.Gap, d.by.Name)
		})},
	}
}

// each is an answer that is given to one after the other. That one is refused does not
// keep the others from getting it.
func each(give func(d *decider, ctx context.Context, r dossier.Ref, s saying) (string, error)) func(*decider, context.Context, []dossier.Ref, saying, *verdict) {
	return func(d *decider, ctx context.Context, refs []dossier.Ref, s saying, v *verdict) {
		for _, r := range refs {
			what, err := give(d, ctx, r, s)
			v.take(d.program, err, r, what)
		}
	}
}

// give gives the answer that a word is to each of the references.
func (d *decider) give(ctx context.Context, word string, refs []dossier.Ref, s saying, v *verdict) error {
	for _, a := range answers() {
		some := slices.DeleteFunc(slices.Clone(refs), func(r dossier.Ref) bool { return r.Kind != a.kind })
		if a.word != word || len(some) == 0 {
			continue
		}
		if a.asks != "" && s.note() == "" {
			return &lockkeeper.InputError{Field: "note", Reason: "to " + word + " a " + string(a.kind) + " you say " + a.asks, Next: "add --note"}
		}
		a.give(d, ctx, some, s, v)
	}
	return nil
}

// kindsOf are the kinds that a word is an answer to.
func kindsOf(word string) (list []dossier.Kind) {
	for _, a := range answers() {
		if a.word == word {
			list = append(list, a.kind)
		}
	}
	return list
}

// decideAs decides on items, and on those of other units that say the same.
func decideAs(decision flow.Decision) func(*decider, context.Context, []dossier.Ref, saying, *verdict) {
	return func(d *decider, ctx context.Context, refs []dossier.Ref, s saying, v *verdict) {
		with := map[dossier.Ref]dossier.Ref{} // why those are decided that were not named
		if !s.only && s.was == "" {
			queue, err := d.book.Waiting(ctx, d.units)
			if err != nil {
				v.take(d.program, err, dossier.Ref{}, "")
				return
			}
			for _, g := range queue {
				if !slices.Contains(refs, g.Ref) {
					continue
				}
				for _, same := range g.Same {
					if !slices.Contains(refs, same) {
						with[same] = g.Ref
					}
				}
			}
		}
		var choices []choice
		for _, r := range slices.Concat(refs, slices.SortedFunc(maps.Keys(with), func(a, b dossier.Ref) int { return strings.Compare(a.String(), b.String()) })) {
			c := choice{ref: r, Choice: dossier.Choice{Item: r.Item, Was: flow.Decision(strings.ToUpper(s.was)), Decision: decision, Notes: s.note()}}
			if like, ok := with[r]; ok {
				c.why = ", as it says the same as " + like.String() + " (--only-this leaves it)"
			}
			choices = append(choices, c)
		}
		d.choose(ctx, choices, v)
	}
}

// choice is a decision on one item of some unit.
type choice struct {
	ref dossier.Ref
	dossier.Choice
	why string
}

// choose stores decisions on items, those of one unit all or none.
func (d *decider) choose(ctx context.Context, choices []choice, v *verdict) {
	var units []string
	for _, c := range choices {
		if !slices.Contains(units, c.ref.Unit) {
			units = append(units, c.ref.Unit)
		}
	}
	for _, unit := range units {
		mine := slices.DeleteFunc(slices.Clone(choices), func(c choice) bool { return c.ref.Unit != unit })
		list := make([]dossier.Choice, len(mine))
		for i, c := range mine {
			list[i] = c.Choice
		}
		err := d.book.Decide(ctx, unit, d.by.Name, list...)
		if err != nil && len(mine) > 1 {
			err = fmt.Errorf("nothing of %s is decided: %w", unit, err)
		}
		if err != nil {
			v.take(d.program, err, dossier.Ref{}, "")
			continue
		}
		for _, c := range mine {
			v.add(c.ref, becomes(c.Decision)+c.why)
		}
	}
}

func becomes(decision flow.Decision) string {
	switch decision {
	case flow.Todo:
		return "is to be done"
	case flow.Defer:
		return "is deferred"
	case flow.Reject:
		return "is rejected"
	}
	return "is open again"
}

// askAPI has a topic asked of the Messages API, which needs a key.
func (d *decider) askAPI(ctx context.Context, r dossier.Ref, _ saying) (string, error) {
	if key, _ := d.lookup("ANTHROPIC_API_KEY"); key == "" {
		return "", &lockkeeper.RefusedError{Act: "ask the API about " + r.String(), Reason: "ANTHROPIC_API_KEY is not set, so topics can only be answered by pasting what was found elsewhere",
			Next: "lockkeeper decide answer " + r.String() + " FILE, or set the key here and where lockkeeper run runs"}
	}
	return "is to be asked of the API", d.book.ChooseAPI(ctx, r.Unit, r.Topic, d.by.Name)
}

// takeBack takes an answer back.
func (d *decider) takeBack(ctx context.Context, r dossier.Ref) (what string, err error) {
	u, err := d.unit(ctx, r.Unit)
	if err != nil {
		return "", err
	}
	by := d.by.Name
	switch r.Kind {
	case dossier.TopicKind:
		asked, err := d.book.ByAPI(ctx, u)
		if err == nil && slices.Contains(asked, r.Topic) {
			return "waits for people again", d.book.WithdrawAPI(ctx, r.Unit, r.Topic, by)
		}
		if err != nil {
			return "", err
		}
		return "waits for an answer again", d.book.TakeBackAnswer(ctx, r.Unit, r.Topic, by)
	case dossier.ItemKind:
		item, ok := u.Item(r.Item)
		if ok && item.Decision == "" {
			return "", &lockkeeper.RefusedError{Act: "undo " + r.String(), Reason: "nobody has decided on it", Next: "lockkeeper decide todo " + r.String()}
		}
		what = becomes("")
		if item.Added {
			what = "is gone"
		}
		return what, d.book.Decide(ctx, r.Unit, by, dossier.Choice{Item: r.Item, Was: item.Decision})
	case dossier.PlanKind:
		return "waits for approval again", d.book.WithdrawApproval(ctx, r.Unit, by)
	case dossier.GapKind:
		return "is open again", d.book.TakeBackGap(ctx, r.Unit, r.Batch, r.Gap, by)
	}
	return "", &lockkeeper.RefusedError{Act: "undo " + r.String(), Reason: "whoever waited for a review goes on with it at once", Next: "lockkeeper undo " + r.Unit + "/" + r.Batch + ", once it landed"}
}
