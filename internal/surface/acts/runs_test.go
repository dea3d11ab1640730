package acts_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/agent/scripted"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/project/projecttest"
	"lockkeeper/internal/surface/acts"
)

// policy answers every decision of the sample.
const policy = "impact>=medium,topics=reject,reviews"

// hearing collects the news of a run.
type hearing struct {
	mu   sync.Mutex
	news []run.News
	came chan struct{} // signaled for each news
}

func newHearing() *hearing { return &hearing{came: make(chan struct{}, 1)} }

func (h *hearing) hear(n run.News) {
	h.mu.Lock()
	h.news = append(h.news, n)
	h.mu.Unlock()
	select {
	case h.came <- struct{}{}:
	default:
	}
}

func (h *hearing) has(is func(run.News) bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.news, is)
}

// until waits for matching news.
func (h *hearing) until(t *testing.T, is func(run.News) bool) {
	t.Helper()
	for !h.has(is) {
		select {
		case <-h.came:
		case <-t.Context().Done():
			t.Fatalf("it was never told: %+v", h.news)
		}
	}
}

func (o *office) runs(h *hearing) *acts.Runs {
	r := acts.NewRuns(o.app, o.env, h.hear)
	o.t.Cleanup(func() { must(o.t, r.Close()) })
	return r
}

// A run inside this process goes from its start to its landings and releases the lease. Meanwhile no other run
// can start.
//
// shows: PL-77 GP-25
func TestRunInThisProcess(t *testing.T) {
	o := newOffice(t, 0)
	ctx := t.Context()
	h := newHearing()
	r := o.runs(h)
	if err := r.Stop(t.Context(), acts.StopOptions{}, person("ann")); lockkeeper.CodeOf(err) != lockkeeper.CodeRefused {
		t.Errorf("nothing was stopped: %v", err)
	}
	asking, done := context.WithCancel(ctx)
	begun, err := r.Start(asking, conduct.Options{Only: []string{"blog/posts"}, Auto: policy, Slots: 2, By: person("ann")})
	must(t, err)
	done() // the caller disconnects
	if begun.Flow != "controllers" || begun.Run == "" || !slices.Equal(begun.Units, []string{"blog/posts"}) || begun.By != "ann" {
		t.Errorf("%+v", begun)
	}
	if _, err := r.Start(ctx, conduct.Options{By: person("bob")}); lockkeeper.CodeOf(err) != lockkeeper.CodeRefused || !strings.Contains(err.Error(), "ann started a run") {
		t.Errorf("%v", err)
	}
	ended, err := r.Wait(ctx)
	must(t, err)
	if ended.Active || ended.Error != "" || ended.Outcome.Complete != 1 || ended.Outcome.Failed != 0 {
		t.Fatalf("%+v, %+v", ended, ended.Outcome)
	}
	if holder, err := conduct.Holder(ctx, o.app); err != nil || holder != "" {
		t.Errorf("%s still conducts: %v", holder, err)
	}
	if !h.has(func(n run.News) bool { return n.Kind == run.NewsLanded }) {
		t.Error("nothing was told of what landed")
	}
}

// Start names another process that runs the flow, and refuses invalid options before it
// begins.
//
// shows: PL-77
func TestRunsThatCannotBegin(t *testing.T) {
	o := newOffice(t, 0)
	ctx := t.Context()
	r := o.runs(newHearing())
	for name, wrong := range map[string]conduct.Options{
		"slots": {Slots: -1}, "budget": {USD: -2}, "tokens": {Tokens: -1}, "policy": {Auto: "invalid"}, "flow": {Flow: "controler"},
		"unit": {Only: []string{"blog/unknown"}}, "plan": {Flow: "tasks"}, "plan of another flow": {Flow: "screens", Plan: "tasks.yaml"},
	} {
		wrong.By = person("ann")
		if _, err := r.Start(ctx, wrong); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("%s: %v", name, err)
		}
	}
	lease, err := conduct.Lease(ctx, o.app, "otter")
	must(t, err)
	var blocked *lockkeeper.BlockedError
	if _, err := r.Start(ctx, conduct.Options{By: person("ann")}); !errors.As(err, &blocked) || blocked.Conflicts[0].Holder != "otter" {
		t.Errorf("%v", err)
	}
	must(t, lease.Release(ctx))
	if last, err := conduct.CurrentRun(o.app); last != nil || err != nil {
		t.Errorf("%+v was begun: %v", last, err)
	}
	must(t, r.Close())
	if _, err := r.Start(ctx, conduct.Options{By: person("ann")}); lockkeeper.CodeOf(err) != lockkeeper.CodeRefused {
		t.Errorf("%v", err)
	}
}

// Stop lets running agents finish, or ends them at once. The run can be resumed after both.
//
// shows: PL-77
func TestStopARun(t *testing.T) {
	o := newOffice(t, 0.2)
	ctx := t.Context()
	started := func(n run.News) bool { return n.Kind == run.NewsStarted }
	for _, now := range []bool{false, true} {
		h := newHearing()
		r := o.runs(h)
		_, err := r.Start(ctx, conduct.Options{Only: []string{"blog/posts"}, Auto: policy, By: person("ann")})
		must(t, err)
		h.until(t, started)
		must(t, r.Stop(t.Context(), acts.StopOptions{Now: now}, person("ann")))
		if now && r.Now().Active {
			t.Error("it still runs")
		}
		ended, err := r.Wait(ctx)
		must(t, err)
		if ended.Active || ended.Error != "" || !ended.Stopping || !ended.Outcome.Stopped {
			t.Errorf("%+v", ended)
		}
		if holder, err := conduct.Holder(ctx, o.app); err != nil || holder != "" {
			t.Errorf("%s still conducts: %v", holder, err)
		}
	}
	r := o.runs(newHearing())
	_, err := r.Start(ctx, conduct.Options{Only: []string{"blog/posts"}, Auto: policy, By: person("ann")})
	must(t, err)
	if ended, err := r.Wait(ctx); err != nil || ended.Outcome.Complete != 1 {
		t.Errorf("%+v: %v", ended, err)
	}
}

// A person can start phases of one unit after the other, all in one run. No other unit starts. Answers and the
// next phase continue the run.
//
// shows: PL-77 PL-78
func TestStartPhases(t *testing.T) {
	o := newOffice(t, 0)
	ctx := t.Context()
	h := newHearing()
	r := o.runs(h)
	ann := person("ann")
	analyzed := func(unit string) func(run.News) bool {
		return func(n run.News) bool {
			return n.Kind == run.NewsDone && n.Unit == unit && n.Phase == "analyze"
		}
	}
	must(t, r.Phase(ctx, "blog/posts", "analyze", ann), r.Phase(ctx, "blog/comments", "analyze", ann))
	h.until(t, analyzed("blog/posts"))
	h.until(t, analyzed("blog/comments"))
	ended, err := r.Wait(ctx)
	must(t, err)
	if ended.Error != "" || h.has(func(n run.News) bool {
		return n.Kind == run.NewsStarted && n.Unit != "blog/posts" && n.Unit != "blog/comments"
	}) {
		t.Errorf("%+v: %+v", ended, h.news)
	}

	wrong := func(unit, phase string, parts ...string) {
		t.Helper()
		err := r.Phase(ctx, unit, phase, ann)
		var status *acts.WrongStatusError
		if !errors.As(err, &status) || status.Unit != unit || status.Phase != phase || lockkeeper.CodeOf(err) != lockkeeper.CodeRefused {
			t.Fatalf("%s of %s: %v", phase, unit, err)
		}
		wantText(t, err.Error(), parts...)
	}
	wrong("blog/posts", "analyze", "it is researching", "lockkeeper decide")
	wrong("blog/posts", "extract", "it is researching", "lockkeeper decide")
	wrong("accounts/sessions", "apply", "it is analyzing", "the phase analyze comes first")
	for _, odd := range [][2]string{{"blog/posts", "decide"}, {"blog/posts", "discover"}, {"blog/posts", "dance"}, {"blog/unknown", "analyze"}} {
		if err := r.Phase(ctx, odd[0], odd[1], ann); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("%s of %s: %v", odd[1], odd[0], err)
		}
	}

	d := o.decider("ann")
	queue, err := d.Waiting(ctx)
	must(t, err)
	for _, g := range queue {
		v, err := d.Give(ctx, "reject", []progress.Ref{g.Ref}, acts.AnswerInput{Notes: []string{"we know"}, Seen: acts.Seen{g.Ref: g.Version}})
		must(t, err, v.Err())
	}
	must(t, r.Phase(ctx, "blog/posts", "extract", ann))
	_, err = r.Wait(ctx)
	must(t, err)
	u, err := o.book().Unit(ctx, "blog/posts")
	must(t, err)
	if u.Phase() != "decide" || u.Status() != "awaiting_decisions" {
		t.Errorf("it is %s", u.Status())
	}
	wrong("blog/posts", "analyze", "it is awaiting_decisions", "lockkeeper decide")
	if u, err := o.book().Unit(ctx, "accounts/sessions"); err != nil || u.Analysis != nil {
		t.Errorf("accounts/sessions was not requested: %+v, %v", u, err)
	}
}

// A person can start batches once the plan is approved, and undo their landings.
//
// shows: PL-77 GP-19 GP-25
func TestStartBatches(t *testing.T) {
	o := newOffice(t, 0)
	ctx := t.Context()
	r := o.runs(newHearing())
	ann := person("ann")
	ended := func() acts.Running {
		t.Helper()
		end, err := r.Wait(ctx)
		must(t, err)
		if end.Error != "" || end.Outcome.Failed > 0 {
			t.Fatalf("%+v, %+v", end, end.Outcome.State)
		}
		return end
	}
	_, err := r.Start(ctx, conduct.Options{Only: []string{unit}, Auto: "topics=reject", By: ann})
	must(t, err)
	ended()
	d := o.decider("ann")
	for _, answer := range [][2]string{{"todo", "impact>=medium"}, {"defer", "impact<=low"}} {
		v, err := d.GiveWhere(ctx, answer[0], answer[1], acts.AnswerInput{})
		must(t, err, v.Err())
	}
	must(t, r.Phase(ctx, unit, "batch_plan", ann))
	ended()
	var status *acts.WrongStatusError
	if err := r.Phase(ctx, unit, "apply", ann); !errors.As(err, &status) || status.Next != "lockkeeper decide approve plan blog/posts" {
		t.Fatalf("%v", err)
	}
	v, err := d.Give(ctx, "approve", []progress.Ref{ref(t, "plan "+unit)}, acts.AnswerInput{})
	must(t, err, v.Err())
	must(t, r.Phase(ctx, unit+"/b1", "apply", ann))
	ended()
	if b := o.batch("b1"); b.Landed == nil {
		t.Fatalf("it is %s", b.Status)
	}
	if b := o.batch("b2"); b.Started != nil {
		t.Errorf("b2 was not requested, and it is %s", b.Status)
	}
	if err := r.Phase(ctx, unit+"/b1", "apply", ann); !errors.As(err, &status) || status.Status != flow.Complete || !strings.Contains(status.Next, "decide redo blog/posts/b1 apply") {
		t.Fatalf("%v", err)
	}
	_, err = d.UndoBatch(ctx, unit, "b1", acts.Holding(o.app, ann))
	must(t, err)
	v, err = acts.Redo{Batch: "b1", Phase: "apply"}.Do(ctx, d, unit)
	must(t, err, v.Err())
	must(t, r.Phase(ctx, unit, "apply", ann))
	ended()
	if b := o.batch("b1"); b.Landed == nil || b.Landed.Undone != nil {
		t.Errorf("it is %s", b.Status)
	}
}

// Starting a phase retries the items that failed in it.
//
// shows: GP-26
func TestStartAPhaseThatFailed(t *testing.T) {
	o := newOffice(t, 0)
	ctx := t.Context()
	r := o.runs(newHearing())
	ann := person("ann")
	script, _ := projecttest.Lookup(o.env)(scripted.ScriptVariable)
	must(t, os.Rename(script, script+".away"), r.Phase(ctx, unit, "analyze", ann))
	ended, err := r.Wait(ctx)
	must(t, err)
	if ended.Outcome.Failed != 1 {
		t.Fatalf("%+v, %+v", ended, ended.Outcome)
	}
	var status *acts.WrongStatusError
	if err := r.Phase(ctx, unit, "extract", ann); !errors.As(err, &status) || status.Status != flow.Failed || status.Next != "lockkeeper decide retry "+unit {
		t.Errorf("%v", err)
	}
	must(t, os.Rename(script+".away", script), r.Phase(ctx, unit, "analyze", ann))
	_, err = r.Wait(ctx)
	must(t, err)
	if u, err := o.book().Unit(ctx, unit); err != nil || u.Analysis == nil {
		t.Errorf("%+v: %v", u, err)
	}
}
