package run_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/agent"
	"lockkeeper/internal/agent/sandbox"
	"lockkeeper/internal/agent/scripted"
	"lockkeeper/internal/agent/supervisor"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/documents"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/flow/sample"
	"lockkeeper/internal/git"
	"lockkeeper/internal/git/gittest"
	"lockkeeper/internal/machine/process"
	"lockkeeper/lock"
	"lockkeeper/sched"
	"lockkeeper/store"
	"lockkeeper/store/memstore"
	"lockkeeper/store/sqlstore"
	"lockkeeper/tree"
)

// agentArgument makes the test binary act as the scripted agent.
const agentArgument = "scripted-agent"

func TestMain(m *testing.M) {
	if handled, code := sandbox.Main(os.Args); handled {
		os.Exit(code)
	}
	if len(os.Args) > 1 && os.Args[1] == agentArgument {
		os.Exit(actAsAgent())
	}
	if len(os.Args) > 1 && os.Args[1] == requestArgument {
		os.Exit(askDesk())
	}
	gittest.Alone()
	goleak.VerifyTestMain(m)
}

// requestArgument makes the test binary a tool that sends a request to its supervisor.
const requestArgument = "send-request"

func askDesk() int {
	client, inside := supervisor.FromEnviron(os.Getenv)
	if !inside {
		return 1
	}
	view, err := client.Grant(context.Background())
	if err == nil {
		err = client.Gap(context.Background(), "app/models/two.rb", "the other half")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(view.Write)
	return 0
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

// A scene is a codebase with everything that a run needs.
type scene struct {
	t      testing.TB
	root   string
	side   string // a directory next to the root
	script string
	opt    run.Options
	locks  *lock.Manager
	newest atomic.Pointer[gate.Gate] // the gate that was opened last

	mu   sync.Mutex
	told []run.News
}

const space = "7f0c7a39-0000-4000-8000-000000000005"

// hung is how long a test waits for a run or a process. It is only a limit for hangs: forty
// controllers take minutes on a busy machine.
const hung = 15 * time.Minute

// stores are the stores that a run is tested with.
var stores = map[string]func(testing.TB, string) store.Store{
	"memory": func(testing.TB, string) store.Store {
		return memstore.New(space, memstore.Options{KeepEvents: 1_000_000})
	},
	"SQLite": func(t testing.TB, side string) store.Store {
		file := filepath.Join(side, "state.db")
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			must(t, sqlstore.CreateSQLite(t.Context(), file, space))
		}
		s, err := sqlstore.OpenSQLite(t.Context(), file, space, sqlstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	},
	"PostgreSQL": func(t testing.TB, side string) store.Store {
		id := newSpace(t)
		must(t, sqlstore.CreateSpace(t.Context(), os.Getenv("LOCKKEEPER_TEST_POSTGRES"), id))
		s, err := sqlstore.OpenPostgres(t.Context(), os.Getenv("LOCKKEEPER_TEST_POSTGRES"), id, sqlstore.Options{})
		if err != nil {
			t.Fatalf("LOCKKEEPER_TEST_POSTGRES: run make test, or scripts/postgres run -- go test ./…: %v", err)
		}
		return s
	},
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// machine returns the sandbox level that this machine supports.
var machine = sync.OnceValues(func() (sandbox.Level, error) { return sandbox.Probe(context.Background()) })

// newScene writes the sample application into a directory, together with the script of the agents
// that change it.
func newScene(t testing.TB, st, flowName string) *scene {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	s := &scene{t: t, root: filepath.Join(dir, "blog"), side: filepath.Join(dir, "side"), script: filepath.Join(dir, "script", "script.yaml")}
	must(t, os.MkdirAll(s.side, 0o700), os.MkdirAll(filepath.Dir(s.script), 0o700), sample.Write(s.root), os.Mkdir(filepath.Join(s.root, ".lockkeeper"), 0o700))
	text, err := sample.Script(0)
	must(t, err)
	must(t, os.WriteFile(s.script, text, 0o600))
	s.assemble(stores[st](t, s.side), flowName)
	return s
}

// git runs git in the root.
func (s *scene) git(args ...string) string {
	s.t.Helper()
	return gittest.Run(s.t, s.root, append([]string{"-c", "init.defaultBranch=main"}, args...)...)
}

// assemble opens all components over a store.
func (s *scene) assemble(st store.Store, flowName string) {
	t := s.t
	f, err := flow.ByName(flowName)
	must(t, err)
	root, err := tree.Open(s.root)
	must(t, err)
	host, err := process.NewHost("")
	must(t, err)
	self, err := process.Self()
	must(t, err)
	locks := lock.New(st, lock.Options{Processes: host, Self: &self, RecoverLandings: func(ctx context.Context, id string) error {
		return s.newest.Load().RecoverLandings(ctx, id)
	}})
	rules := gate.Options{Allowed: []string{"app", "test", "config"}}
	g, err := gate.Open(root, st, locks, rules)
	must(t, err)
	s.newest.Store(g)
	s.locks = locks
	limits := sched.DefaultLimits()
	limits.Agents, limits.Tests = 6, 4
	q, err := sched.New(st, locks, sched.Options{Phases: flow.QueueOrder(), Limits: limits, MaxAttempts: 1000})
	must(t, err)
	docs := documents.Open(filepath.Join(s.root, ".pipeline"))
	prompts, err := flow.NewPrompts(nil)
	must(t, err)
	exe, err := os.Executable()
	must(t, err)
	level, err := machine()
	must(t, err)
	layout := flow.Rails()
	s.opt = run.Options{
		Run: "r1", Root: root, Store: st, Locks: locks, Queue: q, Gate: g, Permits: func(path string) error { return gate.Permits(root, rules, path) }, Host: host, Flow: f, Documents: docs, Layout: layout,
		Progress:  progress.Open(progress.Options{Documents: docs, Screens: documents.Open(filepath.Join(s.root, ".analysis")), Flow: f}),
		Discovery: flow.DiscoverOptions{Glob: "app/controllers/**/*_controller.rb", Excludes: []string{"application_controller"}, TestPath: "test/controllers/{controller}_controller_test.rb", Layout: layout},
		Prompts:   prompts,
		Calls:     filepath.Join(s.root, ".lockkeeper", "calls"), Workspaces: filepath.Join(s.side, "workspaces"), Folder: ".pipeline", Analysis: ".analysis", Own: []string{".pipeline", ".analysis"},
		Env:      append(os.Environ(), scripted.ScriptVariable+"="+s.script, "GORACE=atexit_sleep_ms=0"),
		Limits:   run.Limits{Agents: limits.Agents, API: 4, Tests: limits.Tests, Fixes: 2, Rechecks: 2, CheckTimeout: hung, LimitPause: time.Second},
		Checks:   run.Checks{Test: "sh bin/check {path}", TestPath: "test/controllers/{controller}_controller_test.rb", Commands: map[string][]string{"ci": {"sh bin/ci"}}},
		Land:     "after_verify",
		Baseline: run.BaselineOff,
		Review:   "off",
		Sandbox:  level,
		Reach:    func(string) run.Reach { return run.Reach{Write: []string{filepath.Dir(s.script)}} },
		Actor:    lockkeeper.Actor{Name: "ada", Kind: lockkeeper.ActorPerson},
		Agents: run.Agents{Timeout: hung, StallAfter: hung, Retry: agent.RetryPolicy{Attempts: 2, First: time.Millisecond, Longest: time.Second, Random: func() float64 { return 0 }},
			Named: func(string) (agent.Adapter, error) { return agent.ByName("claude", exe, agentArgument) }},
		Tell: func(n run.News) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.told = append(s.told, n)
			if testing.Verbose() {
				fmt.Printf("  %s %-8s %s/%s %s %s\n", n.At.Format("05.000"), n.Kind, n.Unit, n.Batch, n.Phase, n.Text)
			}
		},
	}
	switch flowName {
	case "screens":
		text, err := os.ReadFile(filepath.Join(s.root, "screens.json"))
		must(t, err)
		s.opt.Manifest, err = flow.ReadManifest("screens.json", text)
		must(t, err)
		s.opt.LockReads = true
	case "tasks":
		text, err := os.ReadFile(filepath.Join(s.root, "tasks.yaml"))
		must(t, err)
		s.opt.Tasks, err = flow.ReadTasks("tasks.yaml", text)
		must(t, err)
	}
	t.Cleanup(func() {
		must(t, g.Close(context.Background()), locks.Close(), st.Close(), root.Close())
	})
}

// withRepo makes the root a repository and lets the run commit.
func (s *scene) withRepo() {
	s.t.Helper()
	s.git("init", "-q")
	must(s.t, os.WriteFile(filepath.Join(s.root, ".gitignore"), []byte(".lockkeeper\n.pipeline\n.analysis\n"), 0o644))
	s.git("add", "-A")
	s.git("commit", "-qm", "begin")
	s.git("config", "user.name", "t")
	s.git("config", "user.email", "t@example.com")
	r, err := git.Open(s.t.Context(), s.root, os.Environ())
	must(s.t, err)
	s.opt.Repo, s.opt.Commit = r, true
}

// run conducts the flow. A policy decides in place of people.
func (s *scene) run(policy string) *run.Outcome {
	s.t.Helper()
	auto, err := progress.ParsePolicy(policy)
	must(s.t, err)
	return s.conduct(request{Auto: &auto})
}

// A request selects the work of a run.
type request struct {
	Only  []string
	Auto  *progress.Policy
	Retry bool
}

func (s *scene) conduct(o request) *run.Outcome {
	s.t.Helper()
	opt := s.opt
	opt.Only, opt.Auto, opt.Retry = o.Only, o.Auto, o.Retry
	p, err := run.New(opt)
	must(s.t, err)
	ctx, cancel := context.WithTimeout(s.t.Context(), hung)
	defer cancel()
	out, err := p.Run(ctx, nil)
	must(s.t, err)
	return out
}

// news returns the news of one kind.
func (s *scene) news(kind run.NewsKind) (list []run.News) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.told {
		if n.Kind == kind {
			list = append(list, n)
		}
	}
	return list
}

// files returns the application's files by path.
func (s *scene) files() map[string]string {
	s.t.Helper()
	all := map[string]string{}
	must(s.t, filepath.WalkDir(s.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(s.root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if strings.HasPrefix(rel, ".") && rel != "." {
				return fs.SkipDir
			}
			return nil
		}
		text, err := os.ReadFile(path)
		all[filepath.ToSlash(rel)] = string(text)
		return err
	}))
	return all
}

// play adds calls to the agents' script, before those of the sample.
func (s *scene) play(calls string) {
	s.t.Helper()
	text, err := sample.Script(0)
	must(s.t, err)
	must(s.t, os.WriteFile(s.script, []byte("calls:\n"+calls+strings.TrimPrefix(string(text), "calls:\n")), 0o600))
}

// tasks gives the tasks flow another plan.
func (s *scene) tasks(plan string) {
	s.t.Helper()
	var err error
	s.opt.Tasks, err = flow.ReadTasks("tasks.yaml", []byte(plan))
	must(s.t, err)
}

// batch returns the state of a batch after a run.
func (s *scene) batch(out *run.Outcome, unit, id string) run.BatchState {
	s.t.Helper()
	for _, u := range out.State.Units {
		for _, b := range u.Batches {
			if u.Name == unit && b.ID == id {
				return b
			}
		}
	}
	s.t.Fatalf("there is no batch %s/%s", unit, id)
	return run.BatchState{}
}

// green runs the application's own checks on the shared tree.
func (s *scene) green() {
	s.t.Helper()
	cmd := exec.Command("sh", "-c", "sh bin/check test/controllers/*/*_test.rb && sh bin/ci")
	cmd.Dir = s.root
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Errorf("the tree is not green: %v\n%s", err, out)
	}
}

// gate opens another gate over the same tree.
func (s *scene) gate(allowed ...string) *gate.Gate {
	return s.openGate(gate.Options{Allowed: allowed})
}

// legacyGate opens a gate that requires no grant.
func (s *scene) legacyGate(allowed ...string) *gate.Gate {
	return s.openGate(gate.Options{Allowed: allowed, GrantOptional: true})
}

func (s *scene) openGate(o gate.Options) *gate.Gate {
	s.t.Helper()
	locks := s.locks
	g, err := gate.Open(s.opt.Root, s.opt.Store, locks, o)
	must(s.t, err)
	s.newest.Store(g)
	s.opt.Permits = func(path string) error { return gate.Permits(s.opt.Root, o, path) }
	s.t.Cleanup(func() { must(s.t, g.Close(context.Background())) })
	return g
}

// reassemble opens all components again after the root was replaced.
func (s *scene) reassemble(flowName string) {
	s.t.Helper()
	must(s.t, os.RemoveAll(s.side), os.Mkdir(s.side, 0o700))
	s.assemble(stores["SQLite"](s.t, s.side), flowName)
}

// apart fails the test if the event log shows conflicting locks held at the same time.
func (s *scene) apart() {
	s.t.Helper()
	held := map[string][]lockkeeper.Lock{}
	events, err := s.locks.Events(s.t.Context(), store.EventQuery{Limit: 1_000_000})
	must(s.t, err)
	for _, ev := range events {
		switch ev.Kind {
		case lockkeeper.EventAcquired:
			for id, others := range held {
				for _, other := range others {
					for _, l := range ev.Locks {
						if lockkeeper.Conflicts(other.Mode, l.Mode) && other.Overlaps(l.Target) {
							s.t.Errorf("event %d: %s got %s while %s held %s", ev.Seq, ev.Holder, l.Path, id, other.Path)
						}
					}
				}
			}
			held[ev.GrantID] = ev.Locks
		case lockkeeper.EventReleased, lockkeeper.EventExpired, lockkeeper.EventRecovered, lockkeeper.EventForceReleased:
			delete(held, ev.GrantID)
		}
	}
}

// workspaces lists what is in the directory of workspaces, without the base that stays.
func (s *scene) workspaces() []os.DirEntry {
	list, _ := os.ReadDir(s.opt.Workspaces)
	return slices.DeleteFunc(list, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), "base-") })
}
