package progress

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"lockkeeper"
	"lockkeeper/internal/flow"
)

// Dismissed is the answer to a gap that needs no change.
const Dismissed = "dismissed"

// A Gap is a change that no grant covered, with its number in the batch. The same change in several calls, such as
// attempts to fix a test, is one gap.
type Gap struct {
	flow.Gap
	Number int `json:"number"` // starts at 1; numbers of equal gaps are left out

	batch *Batch
}

// Gaps lists the gaps of the batch in the order of its documents.
func (b *Batch) Gaps() (list []Gap) {
	number := 0
	for _, p := range b.gapLists() {
		for _, g := range p.gaps {
			number++
			at := slices.IndexFunc(list, func(known Gap) bool { return known.equals(g) })
			switch {
			case at < 0:
				list = append(list, Gap{Gap: g, Number: number, batch: b})
			case list[at].Answer == "":
				list[at].Answer, list[at].By = g.Answer, g.By
			}
		}
	}
	return list
}

// Gap returns the gap of the batch with a number.
func (b *Batch) Gap(number int) (Gap, bool) {
	gaps := b.Gaps()
	at := slices.IndexFunc(gaps, func(g Gap) bool { return g.Number == number })
	if at < 0 {
		return Gap{}, false
	}
	return gaps[at], true
}

// equals reports whether a gap is the same change for the same reason.
func (g Gap) equals(other flow.Gap) bool {
	return g.Path == other.Path && g.Reason == other.Reason && g.Rescue == other.Rescue
}

// set stores the answer to the gap in each document that has it.
func (g Gap) set(ctx context.Context) error {
	for _, p := range g.batch.gapLists() {
		gaps := slices.Clone(p.gaps)
		for i := range gaps {
			if g.equals(gaps[i]) {
				gaps[i].Answer, gaps[i].By = g.Answer, g.By
			}
		}
		if slices.EqualFunc(gaps, p.gaps, func(a, b flow.Gap) bool { return a.Answer == b.Answer && a.By == b.By }) {
			continue
		}
		if err := p.replace(ctx, gaps); err != nil {
			return err
		}
	}
	return nil
}

// A gapList has the gaps of one document. The function replace stores the document with other gaps.
type gapList struct {
	gaps    []flow.Gap
	replace func(ctx context.Context, gaps []flow.Gap) error
}

// gapLists returns the gaps of each valid document of the batch, in order.
func (b *Batch) gapLists() (lists []gapList) {
	if b.Applied != nil {
		lists = append(lists, gapList{b.Applied.Gaps, func(ctx context.Context, gaps []flow.Gap) error {
			changed := *b.Applied
			changed.Gaps = gaps
			return b.docs.applied.replace(ctx, changed, b.docs.applied.doc.About)
		}})
	}
	for _, c := range b.Checks {
		lists = append(lists, gapList{c.Gaps, func(ctx context.Context, gaps []flow.Gap) error {
			changed := *c.Checked
			changed.Gaps = gaps
			return c.replace(ctx, changed, c.doc.About)
		}})
	}
	return lists
}

// AddGaps adds the gaps of failed fixes to the last document of a batch, because their own phase
// has no document. It skips known gaps.
func (b *Tracker) AddGaps(ctx context.Context, unit, batch string, gaps []flow.Gap) error {
	return b.actOn(ctx, unit, batch, func(u *Unit) error {
		is, err := u.needBatch("note gaps of", batch)
		if err != nil {
			return err
		}
		more := slices.DeleteFunc(slices.Clone(gaps), func(g flow.Gap) bool { // a crashed run may have added them
			return slices.ContainsFunc(is.Gaps(), func(known Gap) bool { return known.equals(g) })
		})
		lists := is.gapLists()
		if len(more) == 0 || len(lists) == 0 {
			return nil
		}
		last := lists[len(lists)-1]
		return last.replace(ctx, slices.Concat(last.gaps, more))
	})
}

// DismissGap answers a gap with Dismissed.
func (b *Tracker) DismissGap(ctx context.Context, unit, batch string, number int, by string) error {
	return b.gap(ctx, "dismiss", unit, batch, number, by, func(_ *Unit, _ *Batch, g Gap) error {
		if g.Answer != "" {
			return answered("dismiss", unit, batch, g)
		}
		g.Answer, g.By = Dismissed, by
		return g.set(ctx)
	})
}

// FollowUpGap proposes a batch that makes the change of a gap under its own grant. The text
// change is included in the prompt of its agent. The batch waits for approval.
func (b *Tracker) FollowUpGap(ctx context.Context, unit, batch string, number int, change, by string) (id string, err error) {
	err = b.gap(ctx, "follow up", unit, batch, number, by, func(u *Unit, is *Batch, g Gap) error {
		if g.Answer != "" {
			return answered("follow up", unit, batch, g)
		}
		follow := followUp(is, g, change)
		proposed := u.proposals()
		at := slices.IndexFunc(proposed, func(p flow.Batch) bool { return p.Title == follow.Title && p.Prompt == follow.Prompt })
		if at >= 0 {
			id = proposed[at].ID // a process died before it answered the gap
		} else {
			id = u.freeID()
			follow.ID = id
			if err := b.propose(ctx, u, append(proposed, follow), by); err != nil {
				return err
			}
		}
		g.Answer, g.By = id, by
		return g.set(ctx)
	})
	return id, err
}

// ReopenGap undoes the answer to a gap, if the gap was dismissed or its follow-up is not
// approved.
func (b *Tracker) ReopenGap(ctx context.Context, unit, batch string, number int, by string) error {
	return b.gap(ctx, "reopen", unit, batch, number, by, func(u *Unit, _ *Batch, g Gap) error {
		act := fmt.Sprintf("reopen gap %s/%s/%d", unit, batch, number)
		proposed := u.proposals()
		at := slices.IndexFunc(proposed, func(p flow.Batch) bool { return p.ID == g.Answer })
		switch {
		case g.Answer == "":
			return refused(act, "dismiss it or follow it up", "it has no answer")
		case g.Answer != Dismissed && at < 0:
			return refused(act, "lockkeeper decide show "+unit, "batch %s follows it up and is approved", g.Answer)
		}
		g.Answer, g.By = "", ""
		if err := g.set(ctx); err != nil || at < 0 {
			return err
		}
		return b.propose(ctx, u, slices.Delete(proposed, at, at+1), by)
	})
}

func (b *Tracker) gap(ctx context.Context, act, unit, batch string, number int, by string, do func(*Unit, *Batch, Gap) error) error {
	return b.personal(ctx, unit, by, func(u *Unit) error {
		is, err := u.needBatch(act+" a gap of", batch)
		if err != nil {
			return err
		}
		g, known := is.Gap(number)
		if !known {
			return &lockkeeper.InputError{Field: "gap", Value: strconv.Itoa(number), Reason: fmt.Sprintf("batch %s of %s has %s", batch, unit, counted(len(is.Gaps()), "gap", "gaps")), Next: "list open decisions: lockkeeper decide"}
		}
		return do(u, is, g)
	})
}

func answered(act, unit, batch string, g Gap) error {
	name := fmt.Sprintf("gap %s/%s/%d", unit, batch, g.Number)
	return refused(act+" "+name, "undo the answer first: lockkeeper decide undo "+name, "the answer of %s was: %s", g.By, g.Answer)
}

// followUp returns a batch that makes the change of a gap.
func followUp(of *Batch, g Gap, change string) flow.Batch {
	prompt := fmt.Sprintf("Batch %s (%s) made a change to %s in the phase %s that its grant did not cover: %s", of.ID, of.Title, g.Path, g.Phase, g.Reason)
	if change != "" {
		prompt += "\n\nMake that change as far as it is correct. The refused change was:\n\n" + change
	}
	return flow.Batch{Title: fmt.Sprintf("Follow up gap %s/%d: %s", of.ID, g.Number, g.Path), Items: []string{}, WriteTargets: flow.Targets([]string{g.Path}),
		Reads: of.WriteTargets, After: []string{of.ID}, Prompt: prompt, Tests: of.Tests, Agent: of.Agent}
}

// PlanOf returns a plan of one task that makes the change of a gap, as YAML, for people who run it
// elsewhere. The text change is included in the prompt.
func (b *Batch) PlanOf(g Gap, change string) (string, error) {
	type task struct {
		Name   string   `yaml:"name"`
		Prompt string   `yaml:"prompt"`
		Writes []string `yaml:"writes"`
		Tests  []string `yaml:"tests,omitempty"`
	}
	follow := followUp(b, g, change)
	text, err := yaml.MarshalWithOptions(map[string][]task{"tasks": {{fmt.Sprintf("gap-%.80s-%d", b.ID, g.Number), follow.Prompt, follow.WriteTargets, follow.Tests}}},
		yaml.UseLiteralStyleIfMultiline(true))
	return string(text), err
}

// followUps lists the approved follow-ups of gaps whose batches are unchanged in another plan.
func (u *Unit) followUps(in flow.Plan) (list []flow.Batch) {
	known := map[string]string{} // definition of each batch, by id
	for _, b := range in.Batches {
		known[b.ID] = flow.Digest(b)
	}
	for i := range u.Batches {
		of := &u.Batches[i]
		if known[of.ID] != of.Digest {
			continue
		}
		for _, g := range of.Gaps() {
			if b, ok := u.Batch(g.Answer); ok && b.Approved && known[b.ID] == "" {
				list = append(list, b.Batch)
				known[b.ID] = b.Digest
			}
		}
	}
	return list
}

// freeID returns an id that no batch of the unit has.
func (u *Unit) freeID() string {
	last := 0
	for _, b := range u.Batches {
		if n, err := strconv.Atoi(strings.TrimPrefix(b.ID, "b")); err == nil {
			last = max(last, n)
		}
	}
	return "b" + strconv.Itoa(last+1)
}
