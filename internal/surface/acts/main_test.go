package acts_test

import (
	"strings"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/projecttest"
	"lockkeeper/internal/surface/acts"
)

func TestMain(m *testing.M) { projecttest.Main(m) }

var must = projecttest.Must

// An office is the sample application with its locks in an SQLite file.
type office struct {
	t   *testing.T
	app *project.Project
	env []string
}

// newOffice creates the application. pace is the length of its agents' pauses.
func newOffice(t *testing.T, pace float64) *office {
	t.Helper()
	p := projecttest.Sample(t, projecttest.Options{Pace: pace})
	return &office{t: t, app: p.Open(t), env: p.Env}
}

func person(name string) lockkeeper.Actor {
	return lockkeeper.Actor{Name: name, Kind: lockkeeper.ActorPerson}
}

// decider returns the decider of a person for the flow of controllers.
func (o *office) decider(name string) *acts.Decider {
	o.t.Helper()
	d, err := acts.Open(o.t.Context(), o.app, flow.Controllers().Name, person(name))
	must(o.t, err)
	return d
}

func (o *office) book() *progress.Tracker { return projecttest.Tracker(o.t, o.app) }

// audited advances a unit until its items need decisions.
func (o *office) audited(unit string, words ...string) {
	o.t.Helper()
	projecttest.Audited(o.t, o.book(), unit, words...)
}

// planned advances a unit with two items to an unapproved plan of two batches.
func (o *office) planned(unit string, targets ...string) {
	o.t.Helper()
	projecttest.Planned(o.t, o.book(), unit, targets...)
}

// verified advances a batch to a verified change.
func (o *office) verified(unit, batch string, files []flow.File, gaps ...flow.Gap) {
	o.t.Helper()
	projecttest.Verified(o.t, o.book(), unit, batch, files, gaps...)
}

// gate returns the open decision with a reference.
func (o *office) gate(ref string) progress.Decision {
	o.t.Helper()
	queue, err := o.decider("ann").Waiting(o.t.Context())
	must(o.t, err)
	for _, g := range queue {
		if g.Ref.String() == ref {
			return g
		}
	}
	o.t.Fatalf("%s does not wait: %v", ref, queue)
	return progress.Decision{}
}

func ref(t *testing.T, text string) progress.Ref {
	t.Helper()
	r, err := progress.ParseRef(text)
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
