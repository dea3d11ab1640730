package view_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lockkeeper"
	"lockkeeper/internal/agent/scripted"
	"lockkeeper/internal/app"
	"lockkeeper/internal/dossier"
	"lockkeeper/internal/pipeline"
	"lockkeeper/internal/sample"
	"lockkeeper/internal/sandbox"
	"lockkeeper/internal/view"
	"lockkeeper/sched"
)

// agentArgument makes the test's own program the scripted agent.
const agentArgument = "scripted-agent"

func TestMain(m *testing.M) {
	if handled, code := sandbox.Main(os.Args); handled {
		os.Exit(code)
	}
	if len(os.Args) > 1 && os.Args[1] == agentArgument {
		os.Exit(actAsAgent())
	}
	goleak.VerifyTestMain(m)
}

func actAsAgent() int {
	dir, err := os.Getwd()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return scripted.Run(ctx, scripted.Process{Args: os.Args[2:], Script: os.Getenv(scripted.ScriptVariable), Dir: dir,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr})
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// scene is an open codebase on a real SQLite file, and somebody who looks at it.
type scene struct {
	t      testing.TB
	dir    string // beside the codebase
	root   string
	script string
	app    *app.App
	look   *view.Look
}

// ada is the person of these tests.
var ada = lockkeeper.Actor{Name: "ada", Kind: lockkeeper.ActorPerson}

// newScene makes an empty codebase, lockable, with a configuration.
func newScene(t testing.TB, config string) *scene {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	s := &scene{t: t, dir: dir, root: filepath.Join(dir, "blog"), script: filepath.Join(dir, "script", "script.yaml")}
	must(t, os.MkdirAll(s.root, 0o755), os.MkdirAll(filepath.Dir(s.script), 0o700), os.WriteFile(filepath.Join(s.root, "lockkeeper.yaml"), []byte(config), 0o644))
	s.open()
	return s
}

// sampleScene is the sample application, with scripted agents that change it.
func sampleScene(t testing.TB, config string) *scene {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	s := &scene{t: t, dir: dir, root: filepath.Join(dir, "blog"), script: filepath.Join(dir, "script", "script.yaml")}
	must(t, sample.Write(s.root), os.MkdirAll(filepath.Dir(s.script), 0o700))
	script, err := sample.Script(0)
	must(t, err)
	exe, err := os.Executable()
	must(t, err)
	config = fmt.Sprintf("agent: {name: claude, command: [%q, %s], caches: [%q]}\ngate: {allowed_write_paths: [app, test, config]}\nmax_test_concurrency: 4\n", exe, agentArgument, filepath.Dir(s.script)) + config
	must(t, os.WriteFile(s.script, script, 0o600), os.WriteFile(filepath.Join(s.root, "lockkeeper.yaml"), []byte(config), 0o644))
	s.open()
	return s
}

// checks has batches tested with the application's own checks.
const checks = "run: {test_command: 'sh bin/check {path}', ci: [sh bin/ci]}\n"

func (s *scene) env(name string) (string, bool) {
	if name == "XDG_STATE_HOME" {
		return filepath.Join(s.dir, "state"), true
	}
	return "", false
}

func (s *scene) open() {
	s.t.Helper()
	settings := app.Settings{Dir: s.root, Env: s.env}
	_, err := app.Init(s.t.Context(), settings, app.InitOptions{})
	must(s.t, err)
	s.app, err = app.Open(s.t.Context(), settings)
	must(s.t, err)
	s.look = view.New(s.app)
	s.t.Cleanup(func() { must(s.t, s.app.Close()) })
}

// run conducts a flow until it stands still, with a policy in the place of people; none:
// nobody decides.
func (s *scene) run(flowName, policy string) *pipeline.Outcome {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	plan := ""
	if flowName == "tasks" {
		plan = filepath.Join(s.root, sample.Tasks)
	}
	p, err := s.app.Pipeline(ctx, app.FlowOptions{Flow: flowName, Plan: plan, By: ada,
		Env: append(os.Environ(), scripted.ScriptVariable+"="+s.script, "GORACE=atexit_sleep_ms=0"),
		Tell: func(n pipeline.News) {
			if testing.Verbose() {
				fmt.Printf("  %s %-8s %s/%s %s %s\n", n.At.Format("05.000"), n.Kind, n.Unit, n.Batch, n.Phase, n.Text)
			}
		}})
	must(s.t, err)
	o := pipeline.RunOptions{By: ada.Name}
	if policy != "" {
		auto, err := dossier.ParsePolicy(policy)
		must(s.t, err)
		o.Auto = &auto
	}
	g, err := s.app.Conduct(ctx, ada.Name)
	must(s.t, err)
	out, err := p.Run(ctx, o)
	must(s.t, err, g.Release(ctx))
	return out
}

// hold takes a grant on files.
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

// work queues orders and has a worker take them, which does nothing until the test ends. It
// returns once so many are under way and so many were found blocked.
func (s *scene) work(started, blocked int, orders ...sched.Order) []*lockkeeper.Item {
	s.t.Helper()
	q, err := s.app.Queue()
	must(s.t, err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
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
	for after, acquired, parked := uint64(0), 0, 0; acquired < started || parked < blocked; {
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
				parked++
			}
		}
	}
	return items
}
