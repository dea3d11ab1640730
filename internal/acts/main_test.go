package acts_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"lockkeeper"
	"lockkeeper/internal/acts"
	"lockkeeper/internal/agent/scripted"
	"lockkeeper/internal/app"
	"lockkeeper/internal/dossier"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/sample"
	"lockkeeper/internal/sandbox"
)

// TestMain makes the test's own program what a run starts: a sandbox, and in it, under
// its name, the scripted agent.
func TestMain(m *testing.M) {
	if handled, code := sandbox.Main(os.Args); handled {
		os.Exit(code)
	}
	if filepath.Base(os.Args[0]) == scripted.Program {
		os.Exit(scripted.Main())
	}
	goleak.VerifyTestMain(m)
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// office is the sample application with its locks in an SQLite file, and people in it.
type office struct {
	t   *testing.T
	app *app.App
	env []string
}

// newOffice makes the application, whose agents pause as the pace says.
func newOffice(t *testing.T, pace float64) *office {
	t.Helper()
	const goRace = "atexit_sleep_ms=0" // under the race detector each program lingers for a second at its end
	t.Setenv("GORACE", goRace)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	root, beside := filepath.Join(dir, "blog"), filepath.Join(dir, "beside")
	script, err := sample.Script(pace)
	must(t, err)
	exe, err := os.Executable()
	must(t, err)
	agent, said := filepath.Join(beside, scripted.Program), filepath.Join(beside, "script.yaml")
	settings := fmt.Appendf(nil, "gate:\n  allowed_write_paths: [app, test, config]\nagent:\n  command: [%q]\n  caches: [%q]\nrun:\n  test_command: %s {path}\n", agent, beside, sample.Test)
	must(t, os.Mkdir(beside, 0o700), sample.Write(root), os.Symlink(exe, agent), os.WriteFile(said, script, 0o644),
		os.WriteFile(filepath.Join(root, "lockkeeper.yaml"), settings, 0o644))
	o := &office{t: t, env: []string{"XDG_STATE_HOME=" + filepath.Join(dir, "state"), "HOME=" + beside, "GORACE=" + goRace, "PATH=" + os.Getenv("PATH"), scripted.ScriptVariable + "=" + said}}
	s := app.Settings{Dir: root, Env: o.lookup}
	_, err = app.Init(t.Context(), s, app.InitOptions{})
	must(t, err)
	o.app, err = app.Open(t.Context(), s)
	must(t, err)
	t.Cleanup(func() { must(t, o.app.Close()) })
	return o
}

func (o *office) lookup(name string) (string, bool) {
	for _, entry := range o.env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

func person(name string) lockkeeper.Actor {
	return lockkeeper.Actor{Name: name, Kind: lockkeeper.ActorPerson}
}

// desk is somebody in front of the flow of controllers, as it is now.
func (o *office) desk(name string) *acts.Desk {
	o.t.Helper()
	d, err := acts.Open(o.t.Context(), o.app, flow.Controllers().Name, person(name))
	must(o.t, err)
	return d
}

func (o *office) book() *dossier.Book {
	o.t.Helper()
	book, _, _, err := o.app.Book(flow.Controllers().Name)
	must(o.t, err)
	return book
}

// audited takes a unit to where its items are to be decided.
func (o *office) audited(unit string, words ...string) {
	o.t.Helper()
	ctx, b := o.t.Context(), o.book()
	var e flow.Extract
	s := flow.Synthesis{Dropped: []flow.Dropped{}}
	for i, w := range words {
		e.Items = append(e.Items, flow.Possible{Description: w})
		s.Items = append(s.Items, flow.Ready{ID: fmt.Sprintf("i%d", i+1), Description: w, Impact: flow.High, Effort: flow.Low, Rationale: "because"})
	}
	must(o.t, b.PutAnalysis(ctx, unit, flow.Analysis{Purpose: unit, Behaviour: "it is there", Files: []string{}, Topics: []flow.Topic{}}, nil),
		b.PutExtract(ctx, unit, e, nil), b.PutSynthesis(ctx, unit, s, nil), b.Audit(ctx, unit))
}

// planned takes a unit with two items to a plan of two batches that nobody has approved.
func (o *office) planned(unit string, targets ...string) {
	o.t.Helper()
	ctx, b := o.t.Context(), o.book()
	o.audited(unit, "Mend "+unit, "Polish "+unit)
	must(o.t, b.Decide(ctx, unit, "ann", dossier.Choice{Item: "i1", Decision: flow.Todo}, dossier.Choice{Item: "i2", Decision: flow.Todo}),
		b.PutPlan(ctx, unit, []flow.Batch{
			{ID: "b1", Title: "Mend it", Items: []string{"i1"}, WriteTargets: targets, Effort: flow.Low},
			{ID: "b2", Title: "Polish it", Items: []string{"i2"}, WriteTargets: targets, Effort: flow.Low},
		}, nil))
}

// verified takes a batch to a verified change.
func (o *office) verified(unit, batch string, files []flow.File, gaps ...flow.Gap) {
	o.t.Helper()
	ctx, b := o.t.Context(), o.book()
	begun, err := b.Begin(ctx, unit, batch, "runner")
	must(o.t, err)
	passed := flow.Checked{Passed: true, Runs: []flow.CheckRun{}, Files: files, Gaps: []flow.Gap{}}
	must(o.t, b.PutApplied(ctx, unit, batch, flow.Applied{Batch: begun.Digest, Summary: "mended", Files: files, Gaps: append([]flow.Gap{}, gaps...)}, nil),
		b.PutTests(ctx, unit, batch, passed, nil), b.PutCI(ctx, unit, batch, passed, nil),
		b.PutVerification(ctx, unit, batch, flow.Verification{Verdict: flow.Verdict{Verdict: "pass", Report: "fine", Issues: []string{}}, Files: files}, nil))
}

// gate finds what waits under a reference.
func (o *office) gate(ref string) dossier.Gate {
	o.t.Helper()
	queue, err := o.desk("somebody").Waiting(o.t.Context())
	must(o.t, err)
	for _, g := range queue {
		if g.Ref.String() == ref {
			return g
		}
	}
	o.t.Fatalf("%s does not wait: %v", ref, queue)
	return dossier.Gate{}
}

func ref(t *testing.T, text string) dossier.Ref {
	t.Helper()
	r, err := dossier.ParseRef(text)
	must(t, err)
	return r
}

func wantText(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in\n%s", part, text)
		}
	}
}
