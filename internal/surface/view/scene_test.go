package view_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/flow/sample"
	"lockkeeper/internal/job"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/projecttest"
	"lockkeeper/internal/surface/view"
	"lockkeeper/sched"
)

func TestMain(m *testing.M) { projecttest.Main(m) }

var must = projecttest.Must

// A scene is an open codebase on a real SQLite file, with its Reader.
type scene struct {
	t    testing.TB
	root string
	env  []string
	app  *project.Project
	look *view.Reader
}

// ada is the person who acts in these tests.
var ada = lockkeeper.Actor{Name: "ada", Kind: lockkeeper.ActorPerson}

// newScene creates an empty codebase with locks and a configuration.
func newScene(t testing.TB, config string) *scene {
	t.Helper()
	return sceneAt(t, projecttest.Empty(t, "layout: rails\n"+config))
}

// sampleScene returns the sample application, with scripted agents and its own checks.
func sampleScene(t testing.TB) *scene {
	t.Helper()
	return sceneAt(t, projecttest.Sample(t, projecttest.Options{Run: "  ci: [" + sample.CI + "]\n"}))
}

func sceneAt(t testing.TB, p *projecttest.Project) *scene {
	t.Helper()
	a := p.Open(t)
	return &scene{t: t, root: p.Root, env: p.Env, app: a, look: view.New(a)}
}

// hung is how long a test waits for a run. It only ends hangs.
const hung = 15 * time.Minute

// run conducts a flow until it stops. A policy answers the decisions; empty: they stay
// open.
func (s *scene) run(flowName, policy string) *run.Outcome {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), hung)
	defer cancel()
	plan := ""
	if flowName == "tasks" {
		plan = filepath.Join(s.root, sample.Tasks)
	}
	c, err := conduct.New(ctx, s.app, conduct.Options{Flow: flowName, Plan: plan, By: ada, Auto: policy,
		Env: s.env,
		Tell: func(n run.News) {
			if testing.Verbose() {
				fmt.Printf("  %s %-8s %s/%s %s %s\n", n.At.Format("05.000"), n.Kind, n.Unit, n.Batch, n.Phase, n.Text)
			}
		}})
	must(s.t, err)
	active, err := c.Start(ctx)
	must(s.t, err)
	out, err := active.Pipeline.Run(ctx, nil) // a complete run is not marked ended
	must(s.t, err, active.Close(ctx))
	return out
}

// hold acquires a grant on files and returns its id.
func (s *scene) hold(holder, policy string, paths ...string) string {
	s.t.Helper()
	req := lockkeeper.Request{Holder: holder, Policy: policy}
	for _, path := range paths {
		req.Locks = append(req.Locks, lockkeeper.Lock{Target: lockkeeper.Target{Path: path, Kind: lockkeeper.File}, Mode: lockkeeper.Write})
	}
	g, err := s.app.Locks.TryAcquire(s.t.Context(), req)
	must(s.t, err)
	return g.ID
}

// work enqueues items and starts a worker that does nothing until the test ends. It returns when the given
// numbers of items are started and blocked.
func (s *scene) work(started, blocked int, orders ...sched.ItemSpec) []*lockkeeper.Item {
	s.t.Helper()
	q, err := job.Open(s.app)
	must(s.t, err)
	ctx, cancel := context.WithTimeout(context.Background(), hung)
	events, err := q.Feed(ctx)
	must(s.t, err)
	w, err := q.Start(ctx, sched.WorkerOptions{Slots: 8, Node: "here", Roots: []string{"flow/controllers"}, Run: func(ctx context.Context, job *sched.Job) error {
		<-ctx.Done()
		return &sched.LaterError{Reason: "the test is over"}
	}})
	must(s.t, err)
	s.t.Cleanup(func() {
		must(s.t, w.Close(), events.Close())
		cancel()
	})
	items, err := q.Enqueue(ctx, orders...)
	must(s.t, err)
	for after, acquired, waiting := uint64(0), 0, 0; acquired < started || waiting < blocked; {
		list, err := events.Next(ctx, after)
		must(s.t, err)
		for _, ev := range list {
			after = ev.Seq
			switch ev.Kind {
			case lockkeeper.EventAcquired:
				if strings.HasPrefix(ev.Holder, "j") {
					acquired++
				}
			case lockkeeper.EventBlocked:
				waiting++
			}
		}
	}
	return items
}
