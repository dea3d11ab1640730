package largerun

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/durable"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/documents"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/sample"
	"lockkeeper/internal/job"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/projecttest"
	"lockkeeper/sched"
	"lockkeeper/store"
)

// Options say what the run has. A number of units that is left over waits for decisions on items.
// Each field that is 0 has the default; a negative number means none.
type Options struct {
	Seed  uint64
	Units int // default 300
	Calls int // calls of agents, at least those that the states of the units need; default 2,000

	Failures int // units whose batch failed, in three causes; default 100
	Landings int // units with a landed batch; default 80
	Plans    int // units whose plan of two batches waits for approval; default 70
	Topics   int // units with an open research topic; default 10
	Reviews  int // units whose diff waits for review; default 5
	Running  int // units with an agent at work; default 12
	Waiting  int // units whose batch waits for the locks of a running one; default 8
	Gaps     int // changes without a lock, in batches that failed or landed; default 200
	Rescued  int // batches whose work could not land and is kept; default 40
}

func (o Options) withDefaults() Options {
	for field, number := range map[*int]int{&o.Units: 300, &o.Calls: 2_000, &o.Failures: 100, &o.Landings: 80, &o.Plans: 70, &o.Topics: 10,
		&o.Reviews: 5, &o.Running: 12, &o.Waiting: 8, &o.Gaps: 200, &o.Rescued: 40} {
		*field = max(0, cmp.Or(*field, number))
	}
	return o
}

// A Run is the state of a large run, as it is while its conductor works.
type Run struct {
	*projecttest.Codebase
	Units []string

	opt     Options
	t       testing.TB
	chance  *rand.Rand
	flow    flow.Flow
	tracker *progress.Tracker
	queue   *sched.Queue
	worker  lockkeeper.Worker
	units   []*unit
	began   time.Time     // when the run began
	behind  atomic.Int64  // how far the clock of the store is behind, in nanoseconds
	id      string        // the id of the run
	pace    time.Duration // the mean duration of a phase of a unit
	planned map[string]*working
	calls   int // recorded
	running []*working
	changes int
}

// A fate is the state that a unit reaches.
type fate int

const (
	undecided fate = iota // people decide on its items
	researched
	planned
	reviewed
	failed
	landed
	running
	waiting
)

type unit struct {
	name    string
	fate    fate
	number  int // among the units of the fate
	batches []flow.Batch
	gaps    int
	ended   *working // the first batch, once it ended
}

// New makes a run and opens it until the test ends.
func New(t testing.TB, o Options) *Run {
	t.Helper()
	o = o.withDefaults()
	t.Logf("a run with %+v", o)
	r := &Run{opt: o, t: t, chance: rand.New(rand.NewPCG(o.Seed, 1)), flow: flow.Controllers()}
	r.behind.Store(int64(length))
	r.open()
	r.began = r.now()
	r.record()
	r.register()
	r.distribute()
	r.pass()
	r.dispatchLast()
	r.fill()
	r.behind.Store(0)
	return r
}

// length is how long ago the run began.
const length = 3 * time.Hour

// open creates the codebase.
func (r *Run) open() {
	r.t.Helper()
	p := projecttest.In(r.t, directory(r.t), "")
	config := filepath.Join(p.Root, "lockkeeper.yaml")
	must(r.t, os.Remove(config), sample.Large{Controllers: r.opt.Units, Seed: r.opt.Seed}.Write(p.Root))
	must(r.t, os.WriteFile(config, fmt.Appendf(nil, "max_claude_concurrency: %d\ngate: {allowed_write_paths: [app, test, config]}\nrun:\n  review: risky\n  budget_usd: 1000\n  test_command: %s {path}\n",
		max(1, r.opt.Running), sample.Test), 0o644))
	p.Clock = r.clock
	r.Codebase = p.Codebase(r.t)
	queue, err := job.Scheduler(r.App, r.App.Config.MaxClaudeConcurrency)
	must(r.t, err)
	_, _, docs, err := conduct.OpenDocuments(r.App, r.flow.Name)
	must(r.t, err)
	screens := documents.Open(r.App.Below(r.App.Config.Run.AnalysisDir))
	r.queue, r.tracker = queue, progress.Open(progress.Options{Documents: docs, Screens: screens, Flow: r.flow, Now: r.now})
}

// directory returns an empty directory. It is in memory if there is enough, because nothing here
// tests the disk, and thousands of files are synced.
func directory(t testing.TB) string {
	t.Helper()
	const memory, enough = "/dev/shm", 512 << 20
	var free unix.Statfs_t
	if err := unix.Statfs(memory, &free); err != nil || free.Bavail*uint64(free.Bsize) < enough {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "lockkeeper-run-")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	return dir
}

// record makes this process the conductor of a run that began when the clock began.
func (r *Run) record() {
	r.t.Helper()
	ctx := r.t.Context()
	_, err := conduct.NewRun(ctx, r.App, r.flow.Name, "")
	must(r.t, err)
	current, err := conduct.CurrentRun(r.App)
	must(r.t, err)
	current.Began = r.began
	r.id = current.ID
	must(r.t, durable.WriteJSON(ctx, r.App.Below(project.DirName+"/run.json"), current, 0o600))
	lease, err := conduct.Lease(ctx, r.App, "conductor")
	must(r.t, err)
	r.t.Cleanup(func() { must(r.t, lease.Release(context.WithoutCancel(ctx))) })
}

// clock is the clock of the store. Leases pass in real time.
func (r *Run) clock() store.Moment {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // cannot happen: every kernel has this clock
	}
	return store.Moment{Lease: lockkeeper.Instant(ts.Nano()), Wall: r.now()}
}

func (r *Run) now() time.Time {
	return time.Now().Add(-time.Duration(r.behind.Load())).Round(0).UTC()
}

// set sets the clock of the store, which otherwise advances. It never goes back.
func (r *Run) set(at time.Time) {
	r.behind.Store(max(0, min(r.behind.Load(), int64(time.Since(at)))))
}

// distribute gives each unit its state, in random order.
func (r *Run) distribute() {
	r.t.Helper()
	names, _, err := conduct.Discovered(r.App, r.flow.Name)
	must(r.t, err)
	r.Units = names
	var fates []fate
	for _, some := range []struct {
		fate
		units int
	}{{researched, r.opt.Topics}, {planned, r.opt.Plans}, {reviewed, r.opt.Reviews}, {failed, r.opt.Failures}, {landed, r.opt.Landings}, {running, r.opt.Running}, {waiting, r.opt.Waiting}} {
		fates = append(fates, slices.Repeat([]fate{some.fate}, some.units)...)
	}
	for len(fates) < len(names) {
		fates = append(fates, undecided)
	}
	if len(fates) > len(names) {
		r.t.Fatalf("%d units cannot have %d states", len(names), len(fates))
	}
	r.chance.Shuffle(len(fates), func(i, j int) { fates[i], fates[j] = fates[j], fates[i] })
	count := map[fate]int{}
	for i, name := range names {
		u := &unit{name: name, fate: fates[i], number: count[fates[i]]}
		count[fates[i]]++
		r.units = append(r.units, u)
	}
	r.shareGaps()
}

// shareGaps gives gaps to the units whose agent changes files of a batch that then fails or lands.
func (r *Run) shareGaps() {
	changed := slices.DeleteFunc(slices.Clone(r.units), func(u *unit) bool { return u.fate != landed && (u.fate != failed || r.causeOf(u) == unanswered) })
	for i := range r.opt.Gaps {
		if len(changed) > 0 {
			changed[i%len(changed)].gaps++
		}
	}
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	projecttest.Must(t, errs...)
}
