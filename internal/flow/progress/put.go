package progress

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"lockkeeper"
	"lockkeeper/internal/flow"
)

// engine is the author of documents that no agent made.
const engine = "lockkeeper"

// author returns the author of a document: the agent of the last call.
func author(calls []flow.Call) string {
	if len(calls) == 0 {
		return engine
	}
	return calls[len(calls)-1].Agent
}

// PutAnswer stores the answer of the agent of a phase as the phase's document.
func (b *Tracker) PutAnswer(ctx context.Context, unit string, phase flow.Phase, answer json.RawMessage, calls []flow.Call) error {
	switch phase.Output {
	case flow.AnalysisFile:
		return putAs(ctx, unit, answer, calls, b.PutAnalysis)
	case flow.ExtractFile:
		return putAs(ctx, unit, answer, calls, b.PutExtract)
	case flow.SynthesizeFile:
		return putAs(ctx, unit, answer, calls, b.PutSynthesis)
	case flow.BatchesFile:
		return putAs(ctx, unit, answer, calls, func(ctx context.Context, unit string, plan flow.Plan, calls []flow.Call) error {
			return b.PutPlan(ctx, unit, plan.Batches, calls)
		})
	}
	return put(ctx, b, unit, phase.Output, calls, func(u *Unit) (json.RawMessage, loaded[json.RawMessage], error) {
		return answer, u.docs.others[phase.Output], nil
	})
}

func putAs[T any](ctx context.Context, unit string, answer json.RawMessage, calls []flow.Call, put func(context.Context, string, T, []flow.Call) error) error {
	var doc T
	if err := json.Unmarshal(answer, &doc); err != nil {
		return fmt.Errorf("the agent's answer: %w", err)
	}
	return put(ctx, unit, doc, calls)
}

// PutAnalysis stores the answer of the phase analyze and gives each topic a unique slug.
func (b *Tracker) PutAnalysis(ctx context.Context, unit string, a flow.Analysis, calls []flow.Call) error {
	return put(ctx, b, unit, flow.AnalysisFile, calls, func(u *Unit) (flow.Analysis, loaded[flow.Analysis], error) {
		return a.Slugged(), u.docs.analysis, nil
	})
}

// PutExtract stores the answer of the phase extract and gives each item a unique id.
func (b *Tracker) PutExtract(ctx context.Context, unit string, e flow.Extract, calls []flow.Call) error {
	return put(ctx, b, unit, flow.ExtractFile, calls, func(u *Unit) (flow.Extract, loaded[flow.Extract], error) {
		return e.Numbered(), u.docs.extract, nil
	})
}

// PutSynthesis stores the answer of the phase synthesize. It refuses an item that the extract
// does not have.
func (b *Tracker) PutSynthesis(ctx context.Context, unit string, s flow.Synthesis, calls []flow.Call) error {
	return put(ctx, b, unit, flow.SynthesizeFile, calls, func(u *Unit) (flow.Synthesis, loaded[flow.Synthesis], error) {
		return s, u.docs.synthesis, flow.CheckSynthesis(s, *u.Extract)
	})
}

// PutPlan stores the answer of the phase batch_plan: batches for exactly the TODO items, numbered
// b1, b2, … in their order. In a flow without a review of plans, the plan is approved.
func (b *Tracker) PutPlan(ctx context.Context, unit string, batches []flow.Batch, calls []flow.Call) error {
	plan, err := flow.Number(flow.Plan{Batches: batches})
	if err != nil {
		return err
	}
	return put(ctx, b, unit, flow.BatchesFile, calls, func(u *Unit) (flow.Plan, loaded[flow.Plan], error) {
		plan.Approved = b.unasked()
		_, err := u.fits(plan)
		return plan, u.docs.plan, err
	})
}

// PutTasks stores the plan of a flow without decisions on items: the tasks of a file, with
// their names as ids. It replaces an earlier plan, except for follow-ups of unchanged tasks.
// Documents of unchanged tasks still count.
func (b *Tracker) PutTasks(ctx context.Context, unit string, plan flow.Plan) error {
	if b.decides() {
		return &lockkeeper.InputError{Field: "flow", Value: b.flow.Name, Reason: "people decide on items in it", Next: "use PutPlan"}
	}
	return b.act(ctx, unit, func(u *Unit) error {
		plan := flow.Plan{Batches: append(slices.Clone(plan.Batches), u.followUps(plan)...), Approved: plan.Approved}
		if u.Plan != nil && samePlan(*u.Plan, plan) {
			return nil
		}
		if unasked := b.unasked(); plan.Approved == nil || unasked == nil {
			plan.Approved = unasked
		}
		return b.putPlan(ctx, u, plan, engine)
	})
}

func samePlan(a, b flow.Plan) bool {
	return slices.EqualFunc(a.Batches, b.Batches, func(x, y flow.Batch) bool { return flow.Digest(x) == flow.Digest(y) })
}

func (b *Tracker) putPlan(ctx context.Context, u *Unit, plan flow.Plan, by string) error {
	if err := b.check(flow.BatchesFile, plan); err != nil {
		return err
	}
	return b.write(ctx, u.docs.plan.stored, plan, by)
}

// check validates a document before it is written.
func (b *Tracker) check(file string, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if p, ok := b.flow.PhaseOf(file); ok && p.Unit != flow.Screen {
		return p.CheckOutput(body)
	}
	return flow.Check(file, body)
}

// unasked returns the automatic approval of a plan in a flow without a review of plans. It
// returns nil if people approve plans.
func (b *Tracker) unasked() *flow.Approval {
	if p, ok := b.flow.PhaseOf(flow.BatchesFile); ok && p.Review {
		return nil
	}
	return &flow.Approval{By: engine, At: b.time()}
}

// put stores the output of the next phase. It changes no existing document. Storing the same
// output again is not an error, because a caller may not know that it succeeded.
func put[T any](ctx context.Context, b *Tracker, unit, file string, calls []flow.Call, fill func(*Unit) (T, loaded[T], error)) error {
	phase, ok := b.flow.PhaseOf(file)
	if !ok {
		return &lockkeeper.InputError{Field: "document", Value: file, Reason: "the flow " + b.flow.Name + " has no phase that writes it", Next: "use the flow whose phase writes it"}
	}
	return b.act(ctx, unit, func(u *Unit) error {
		reached := b.reached(u, phase)
		if reached < 0 && u.phase == "" {
			return refused("store "+unit+"/"+file, "lockkeeper decide", "%s is %s: nothing is left to do", unit, u.status)
		}
		if reached < 0 {
			return refused("store "+unit+"/"+file, "run the phase "+u.Phase()+" first", "%s is %s: the document of the phase %s is missing", unit, u.Status(), u.Phase())
		}
		value, is, err := fill(u)
		if err != nil {
			return err
		}
		if reached > 0 {
			if equal(is.value, value) {
				return nil
			}
			return refused("store "+unit+"/"+file, "run its phase again, which archives it and the documents made from it", "it was stored at %s by %s", stamp(is.since()), is.doc.About.By)
		}
		if err := b.check(file, value); err != nil {
			return fmt.Errorf("store %s: %w", unit, err)
		}
		return b.write(ctx, is.stored, value, author(calls), calls...)
	})
}

func equal(stored, other any) bool {
	a, err := json.Marshal(stored)
	b, err2 := json.Marshal(other)
	return err == nil && err2 == nil && bytes.Equal(a, b)
}

// reached compares the state of a unit with a phase. It returns a negative number if an earlier
// phase is next, 0 if this phase is next, and a positive number if its output exists.
func (b *Tracker) reached(u *Unit, phase flow.Phase) int {
	if phase.Output == flow.BatchesFile {
		switch {
		case u.Plan != nil:
			return 1
		case u.Decisions != nil, !b.decides():
			return 0
		}
		return -1
	}
	for _, p := range b.flow.Phases {
		switch {
		case p.Name == u.phase && p.Name == phase.Name:
			return 0
		case p.Name == u.phase:
			return -1
		case p.Name == phase.Name:
			return 1
		}
	}
	return 1
}

func (b *Tracker) decides() bool {
	_, ok := b.flow.PhaseOf(flow.DecisionsFile)
	return ok
}
