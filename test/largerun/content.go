package largerun

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/landing"
	"lockkeeper/rescue"
)

// These files are written by many batches.
const (
	contended  = "app/controllers/concerns/authentication.rb" // a running batch holds it, and others wait for it
	paginated  = "app/controllers/concerns/pagination.rb"     // gaps change it, while landings change it too
	everyThird = 3                                            // of the batches that land changes paginated
)

// improvements are the items of a unit.
var improvements = []string{"Page the list", "Check who may see a record"}

// endPhase stores the answer of the agent of a phase of a unit.
func (r *Run) endPhase(ctx context.Context, w *working) {
	r.t.Helper()
	u := w.unit
	calls := []flow.Call{r.endCall(w, w.phase, w.began, w.ends, "")}
	switch w.phase {
	case analyze:
		a := flow.Analysis{Purpose: "Shows the records of " + u.name + ".", Behaviour: "The list is open to everyone. Only a person who is logged in changes a record.",
			Screens: []flow.Served{{Name: "List", Action: "index"}}, Relations: []flow.Relation{}, Files: []string{controllerOf(u), contended}, Topics: []flow.Topic{}}
		if u.fate == researched {
			a.Topics = []flow.Topic{{Prompt: "Which ways to page a list of " + path.Base(u.name) + " stay fast with a million records?"}}
		}
		must(r.t, r.tracker.PutAnalysis(ctx, u.name, a, calls))
	case extract:
		var e flow.Extract
		for _, what := range improvements {
			e.Items = append(e.Items, flow.Possible{Description: what + " of " + u.name})
		}
		must(r.t, r.tracker.PutExtract(ctx, u.name, e, calls))
	case synthesize:
		s := flow.Synthesis{Dropped: []flow.Dropped{}}
		for i, what := range improvements {
			s.Items = append(s.Items, flow.Ready{ID: fmt.Sprintf("i%d", i+1), Description: what + " of " + u.name, Impact: []flow.Level{flow.High, flow.Medium, flow.Low}[(u.number+i)%3],
				Effort: []flow.Level{flow.Low, flow.Medium}[i], Rationale: "The list has no limit today, and the view shows all of it."})
		}
		must(r.t, r.tracker.PutSynthesis(ctx, u.name, s, calls))
	case batchPlan:
		must(r.t, r.tracker.PutPlan(ctx, u.name, plan(u), calls))
		stored, err := r.tracker.Unit(ctx, u.name)
		must(r.t, err)
		u.batches = stored.Plan.Batches
	}
}

func controllerOf(u *unit) string { return "app/controllers/" + u.name + "_controller.rb" }
func viewOf(u *unit) string       { return "app/views/" + u.name + "/index.html.erb" }

func (r *Run) decide(ctx context.Context, u *unit) {
	r.t.Helper()
	var choices []progress.Choice
	for i := range improvements {
		choices = append(choices, progress.Choice{Item: fmt.Sprintf("i%d", i+1), Decision: flow.Todo})
	}
	must(r.t, r.tracker.Decide(ctx, u.name, "ada", choices...))
}

// plan returns the batches of a unit: two if people have to approve them, and for some of the units
// that land.
func plan(u *unit) []flow.Batch {
	one := flow.Batch{ID: "b1", Title: improvements[0], Items: []string{"i1"}, WriteTargets: []string{controllerOf(u)}, Effort: flow.Low}
	two := flow.Batch{ID: "b2", Title: improvements[1], Items: []string{"i2"}, WriteTargets: []string{controllerOf(u), viewOf(u)}, Effort: flow.Medium, After: []string{"b1"}}
	if u.fate == planned || u.fate == landed && u.number%4 == 0 {
		return []flow.Batch{one, two}
	}
	one.Items, one.WriteTargets = []string{"i1", "i2"}, two.WriteTargets
	switch {
	case u.fate == landed && u.number%everyThird == 1:
		one.WriteTargets = append(one.WriteTargets, paginated)
	case u.fate == waiting, u.fate == running && u.number == 0:
		one.WriteTargets = append(one.WriteTargets, contended)
	}
	return []flow.Batch{one}
}

// change returns the new content of a file that a batch writes.
func change(old []byte, w *working) []byte {
	note := "# " + w.name() + " pages the list.\n"
	if !strings.Contains(string(old), "class ") && !strings.Contains(string(old), "module ") {
		return append([]byte("<%# "+w.name()+" pages the list. %>\n"), old...)
	}
	return append([]byte(note), bytes.Replace(old, []byte("newest_first)"), []byte("newest_first.page(params[:page]))"), 1)...)
}

func version(text []byte) lockkeeper.Version {
	return lockkeeper.Version{Kind: lockkeeper.File, Mode: 0o644, Sum: sha256.Sum256(text)}
}

// endBatch stores the documents of a batch, and returns why it failed, or nil.
func (r *Run) endBatch(ctx context.Context, w *working) error {
	r.t.Helper()
	u, id := w.unit, w.batch.ID
	begun, err := r.tracker.Begin(ctx, u.name, id, "lockkeeper")
	must(r.t, err)
	third := w.ends.Sub(w.began) / 3
	tested, verified := w.began.Add(third), w.began.Add(2*third)
	if u.fate == failed && r.causeOf(u) == unanswered {
		r.endCall(w, apply, w.began, w.ends, longPrompt)
		r.keepWork(ctx, w, []byte("# unfinished\n"))
		return errors.New("apply: " + longPrompt)
	}
	applied := r.endCall(w, apply, w.began, tested, "")
	var files []flow.File
	var changes []gate.Change
	for _, target := range w.batch.WriteTargets {
		old, err := os.ReadFile(r.App.Below(target))
		must(r.t, err)
		text := change(old, w)
		for _, content := range [][]byte{old, text} {
			_, err := r.tracker.Keep(ctx, u.name, id, bytes.NewReader(content))
			must(r.t, err)
		}
		base := version(old)
		files = append(files, flow.File{Path: target, Old: base, New: version(text)})
		changes = append(changes, gate.Change{Path: target, Body: body(text), Base: &base})
	}
	gaps := r.gaps(ctx, w)
	must(r.t, r.tracker.PutApplied(ctx, u.name, id, flow.Applied{Batch: begun.Digest, Summary: "The list has pages now.", Files: files, Gaps: gaps}, []flow.Call{applied}))
	if u.fate == failed {
		r.keepWork(ctx, w, change(nil, w))
		return r.failTests(w, tested)
	}
	passed := flow.Checked{State: flow.CheckPassed, Passed: true, Files: files, Gaps: []flow.Gap{}, Runs: []flow.CheckRun{r.check(w, tested, verified, 0, "2 runs, 4 assertions, 0 failures\n")}}
	skipped := flow.Checked{State: flow.CheckSkipped, Skipped: "ci_commands is empty", Runs: []flow.CheckRun{}, Files: files, Gaps: []flow.Gap{}}
	must(r.t, r.tracker.PutCheck(ctx, u.name, id, test, passed, nil), r.tracker.PutCheck(ctx, u.name, id, "ci", skipped, nil))
	verdict := flow.Verdict{Verdict: "pass", Report: "The list has pages, and nothing else changed.", Issues: []string{}}
	must(r.t, r.tracker.PutVerification(ctx, u.name, id, flow.Verification{Verdict: verdict, Files: files}, []flow.Call{r.endCall(w, verify, verified, w.ends, "")}))
	if u.fate == reviewed {
		must(r.t, r.tracker.PutReview(ctx, u.name, id, files))
		return nil
	}
	done, err := landing.ApplyUnder(ctx, r.App, &w.job.Grant.Grant, changes, true)
	must(r.t, err)
	must(r.t, r.tracker.PutLanded(ctx, u.name, id, flow.Landed{Landings: []uint64{done.Landing.Seq}, Grant: w.job.Grant.ID, Fence: w.job.Grant.Fence, Files: files, At: r.now()}))
	return nil
}

func body(text []byte) gate.Body {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
}

// gaps keeps changes of a batch that no lock covered: of a file that others change, or of a test.
func (r *Run) gaps(ctx context.Context, w *working) []flow.Gap {
	r.t.Helper()
	gaps := []flow.Gap{}
	for n := range w.unit.gaps {
		target, text := paginated, ""
		if n%2 == 1 {
			target = "test/controllers/" + w.unit.name + "_controller_test.rb"
		}
		old, err := os.ReadFile(r.App.Below(target))
		must(r.t, err)
		text = fmt.Sprintf("%s# %s needs this (%d).\n", old, w.name(), n)
		const reason = "the batch has no write lock on it"
		kept := r.keep(ctx, rescue.Entry{Kind: rescue.Gap, Path: target, Holder: w.name(), Reason: reason, Base: version(old)}, []byte(text))
		gaps = append(gaps, flow.Gap{Path: target, Reason: reason, Phase: apply, Planned: "batch_plan of " + w.unit.name, Rescue: kept, At: r.now()})
	}
	return gaps
}

// keepWork keeps the work of a batch that did not land, for some of the failed ones.
func (r *Run) keepWork(ctx context.Context, w *working, text []byte) {
	r.t.Helper()
	if w.unit.number < r.opt.Rescued {
		target := w.batch.WriteTargets[0]
		old, err := os.ReadFile(r.App.Below(target))
		must(r.t, err)
		r.keep(ctx, rescue.Entry{Kind: rescue.Unlanded, Path: target, Holder: w.name(), Reason: "its batch failed", Base: version(old)}, append(text, old...))
	}
}

func (r *Run) keep(ctx context.Context, e rescue.Entry, text []byte) (id string) {
	r.t.Helper()
	g, err := r.App.Gate()
	must(r.t, err)
	e.At, e.Mode = r.now().Truncate(time.Millisecond), 0o644
	e, err = g.Keep(ctx, e, body(text))
	must(r.t, err)
	return e.ID
}
