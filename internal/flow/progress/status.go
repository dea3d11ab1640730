package progress

import (
	"encoding/json"
	"slices"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/documents"
)

// ReviewPhase and LandPhase are the last two phases of every batch. No flow lists them. A batch that
// waits for its review has the status flow.AwaitingReview. While it waits to land, it keeps the
// status of its last listed phase.
const (
	ReviewPhase = "review"
	LandPhase   = "land"
)

// judge goes through the phases of the flow in order and keeps the valid documents. The first
// phase whose output is missing, malformed or outdated determines the status. Later documents do
// not count.
func (u *Unit) judge(f flow.Flow) {
	for i, p := range f.Phases {
		if p.Unit == flow.BatchUnit {
			break
		}
		if p.Output == "" || p.Unit == flow.Screen {
			continue
		}
		done, last := u.accept(f, p)
		if !done {
			if i > 0 && f.Phases[i-1].Unit == flow.Screen && u.Plan == nil {
				p = f.Phases[i-1] // the screens have documents of their own
			}
			u.phase, u.status = p.Name, p.Status
			return
		}
		if last {
			u.status = flow.Complete
			return
		}
	}
	u.judgeBatches(f)
}

// judgeBatches gives a unit with a plan the phase and status of its first batch that is not complete.
func (u *Unit) judgeBatches(f flow.Flow) {
	u.phase, u.status, u.AwaitsReview = "", flow.Complete, false
	for _, batch := range u.Batches {
		if batch.Next != "" {
			u.phase, u.status = batch.Next, batch.Status
			if u.AwaitsReview = !batch.Approved; u.AwaitsReview { // only proposed follow-ups are left
				plan := f.Phases[slices.IndexFunc(f.Phases, func(p flow.Phase) bool { return p.Output == flow.BatchesFile })]
				u.phase, u.status = plan.Name, plan.Status
			}
			return
		}
	}
}

// accept uses the output of a phase if it is valid. If last is true, the later phases have nothing
// to do.
func (u *Unit) accept(f flow.Flow, p flow.Phase) (done, last bool) {
	switch p.Output {
	case flow.AnalysisFile:
		u.Analysis = u.docs.analysis.value
		return u.Analysis != nil, false
	case flow.ResearchFolder:
		u.Topics = u.topics()
		return !slices.ContainsFunc(u.Topics, func(t Topic) bool { return t.State == Pending }), false
	case flow.ExtractFile:
		u.Extract = u.docs.extract.value
		return u.Extract != nil, false
	case flow.SynthesizeFile:
		if s := u.docs.synthesis.value; s != nil && flow.CheckSynthesis(*s, *u.Extract) == nil {
			u.Synthesis = s
		}
		return u.Synthesis != nil, false
	case flow.AuditFile:
		if a := u.docs.audit.value; a != nil && covers(*a, *u.Synthesis) {
			u.Audit = a
		}
		return u.Audit != nil, false
	case flow.DecisionsFile:
		u.decided()
		none := len(u.Items) == 0
		todo := slices.ContainsFunc(u.Items, func(i Item) bool { return i.Decision == flow.Todo })
		return none || u.Decisions != nil, none || !todo
	case flow.BatchesFile:
		u.planned(f)
		return u.Plan != nil && !u.AwaitsReview, false
	}
	if doc, known := u.docs.others[p.Output]; known {
		if doc.value == nil {
			return false, false
		}
		if u.Outputs == nil {
			u.Outputs = map[string]json.RawMessage{}
		}
		u.Outputs[p.Output] = *doc.value
	}
	return true, false
}

// covers reports whether an audit covers exactly these items.
func covers(a flow.Audit, s flow.Synthesis) bool {
	rest := map[string]flow.Ready{}
	for _, i := range s.Items {
		rest[i.ID] = i
	}
	for _, i := range a.Items {
		if rest[i.ID] != i.Ready {
			return false
		}
		delete(rest, i.ID)
	}
	for _, d := range a.Dropped {
		if _, known := rest[d.ID]; !known {
			return false
		}
		delete(rest, d.ID)
	}
	return len(rest) == 0
}

// decided finds the decision of every item. A draft overrides decisions.json, so that decisions
// can be undone. A decision belongs to the words of an item, not to its id, so that people need
// not decide again after a new extract.
func (u *Unit) decided() {
	from := u.docs.draft.value
	if from == nil {
		from = u.docs.decisions.value
	}
	made := map[string]flow.Decided{}
	var added []Item
	if from != nil {
		for _, d := range from.Items {
			if d.Added {
				added = append(added, Item{Audited: flow.Audited{Ready: d.Ready}, Decision: d.Decision, By: d.By, At: d.At, Notes: d.Notes, Added: true})
			} else {
				made[documents.Normalize(d.Description)] = d
			}
		}
	}
	for _, a := range u.Audit.Items {
		d := made[documents.Normalize(a.Description)]
		u.Items = append(u.Items, Item{Audited: a, Decision: d.Decision, By: d.By, At: d.At, Notes: d.Notes})
	}
	u.Items = append(u.Items, added...)
	if u.docs.draft.value == nil && from != nil && u.Open() == 0 && same(*from, u.verdicts()) {
		u.Decisions = from
	}
}

// Open counts the items without a decision.
func (u *Unit) Open() (n int) {
	for _, i := range u.Items {
		if i.Decision == "" {
			n++
		}
	}
	return n
}

// verdicts returns the decisions of the items as stored.
func (u *Unit) verdicts() flow.Decisions {
	list := flow.Decisions{Items: []flow.Decided{}}
	for _, i := range u.Items {
		if i.Decision != "" {
			list.Items = append(list.Items, flow.Decided{Ready: i.Ready, Decision: i.Decision, By: i.By, At: i.At, Notes: i.Notes, Added: i.Added})
		}
	}
	return list
}

func same(a, b flow.Decisions) bool {
	return slices.EqualFunc(a.Items, b.Items, func(x, y flow.Decided) bool {
		return x.Ready == y.Ready && x.Decision == y.Decision
	})
}

// planned sets the plan and its batches if the plan matches the decisions.
func (u *Unit) planned(f flow.Flow) {
	plan := u.docs.plan.value
	if plan == nil {
		return
	}
	warnings, err := u.fits(*plan)
	if err != nil {
		return // the plan was made for other decisions
	}
	u.Warnings = warnings
	u.Plan = plan
	u.AwaitsReview = plan.Approved == nil
	for _, def := range plan.Batches {
		u.Batches = append(u.Batches, u.batch(f, def, plan.Approved != nil))
	}
	if p := u.docs.proposed.value; p != nil {
		for _, def := range p.Batches {
			if _, taken := u.Batch(def.ID); !taken {
				u.Batches = append(u.Batches, u.batch(f, def, false))
			}
		}
	}
	for i := range u.Batches {
		u.Batches[i].Blocked = u.blocked(u.Batches[i])
	}
}

// fits checks a plan against the decisions. Follow-ups of gaps have no items.
func (u *Unit) fits(plan flow.Plan) (warnings []string, err error) {
	if u.Decisions == nil {
		return nil, nil // the flow has no decisions on items
	}
	plan.Batches = slices.DeleteFunc(slices.Clone(plan.Batches), func(b flow.Batch) bool { return len(b.Items) == 0 && b.Prompt != "" })
	return flow.CheckPlan(plan, u.Decisions.Items)
}
