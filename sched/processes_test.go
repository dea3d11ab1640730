package sched_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/internal/machine/process"
	"lockkeeper/lock"
	"lockkeeper/sched"
	"lockkeeper/store"
	"lockkeeper/store/sqlstore"
	"lockkeeper/store/storetest"
)

// Arguments that make the test binary run as a worker, or as the command of an item.
const (
	workerArg = "sched-worker"
	jobArg    = "sched-job"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == workerArg {
		os.Exit(workerMain(os.Args[2]))
	}
	if len(os.Args) == 3 && os.Args[1] == jobArg {
		os.Exit(jobMain(os.Args[2]))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		database.Drop()
		os.Exit(code)
	}))
}

// database is shared by all tests of the run.
var database = &storetest.Database{Prefix: "sched"}

// A shop is a queue that several processes serve.
type shop struct {
	Kind, Where, Space string
	Dir                string           // where jobs record their traces
	Options            sqlstore.Options `json:"-"`
}

var shopLimits = sched.Limits{Agents: 5, API: 2, Tests: 1, Jobs: 100, CPU: 2, JobsPerProject: 100, MapsPerProject: 1}

func (s shop) open(ctx context.Context) (store.Store, error) {
	opt := s.Options
	opt.Busy = time.Minute
	if s.Kind == "PostgreSQL" {
		return sqlstore.OpenPostgres(ctx, s.Where, s.Space, opt)
	}
	return sqlstore.OpenSQLite(ctx, s.Where, s.Space, opt)
}

// queue opens the queue of a shop in this process.
func (s shop) queue(ctx context.Context) (q *sched.Queue, self lockkeeper.Process, done func() error, err error) {
	st, err := s.open(ctx)
	if err != nil {
		return nil, self, nil, err
	}
	if self, err = process.Self(); err != nil {
		return nil, self, nil, err
	}
	host, err := process.NewHost("")
	if err != nil {
		return nil, self, nil, err
	}
	locks := lock.New(st, lock.Options{Processes: host, Self: &self})
	q, err = newQueue(st, locks, sched.Options{Limits: shopLimits, MaxAttempts: 1 << 20})
	return q, self, func() error { return errors.Join(locks.Close(), st.Close()) }, err
}

// workerMain runs a worker of a shop until there is nothing to do, or it is killed.
func workerMain(where string) int {
	var s shop
	err := json.Unmarshal([]byte(where), &s)
	if err == nil {
		err = s.work(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		return 1
	}
	return 0
}

func (s shop) work(ctx context.Context) error {
	q, self, done, err := s.queue(ctx)
	if err != nil {
		return err
	}
	w, err := q.Start(ctx, sched.WorkerOptions{Slots: 2, Node: "here", Process: &self, UntilEmpty: true, TickEvery: 200 * time.Millisecond,
		Run:     func(ctx context.Context, job *sched.Job) error { return s.do(ctx, job) },
		OnError: func(err error) { fmt.Fprintln(os.Stderr, "worker:", err) }})
	if err != nil {
		return errors.Join(err, done())
	}
	return errors.Join(w.Wait(), done())
}

// An errand describes a job. The job acquires kernel locks for the locks and slots of its item.
type errand struct {
	Dir, Item string
	Locks     []lockkeeper.Lock
	Pools     []string
}

func (s shop) do(ctx context.Context, job *sched.Job) error {
	what, err := json.Marshal(errand{Dir: s.Dir, Item: job.Item.ID, Locks: job.Item.Locks, Pools: append(job.Item.Caps, job.Item.Pools...)})
	if err != nil {
		return err
	}
	code, err := process.Run(ctx, process.Command{Argv: []string{os.Args[0], jobArg, string(what)}, Grant: job.Grant.ID})
	if err == nil && code != 0 {
		err = fmt.Errorf("exit status %d", code)
	}
	return err
}

// jobMain runs a job. If a kernel lock shows that another job has the same lock or slot, it
// records a complaint.
func jobMain(what string) int {
	var e errand
	if err := json.Unmarshal([]byte(what), &e); err != nil {
		panic(err)
	}
	trace := func(kind, text string) {
		f, err := os.OpenFile(filepath.Join(e.Dir, kind), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err == nil {
			_, err = fmt.Fprintln(f, text)
		}
		if err != nil {
			panic(err)
		}
	}
	for _, l := range e.Locks {
		how := unix.LOCK_EX
		if l.Mode == lockkeeper.Read {
			how = unix.LOCK_SH
		}
		if !flock(filepath.Join(e.Dir, "path-"+l.Path), how) {
			trace("complaints", e.Item+": another item works on "+l.Path)
		}
	}
	for _, pool := range e.Pools {
		limit, _ := shopLimits.Of(pool)
		got := false
		for n := 0; n < limit && !got; n++ {
			got = flock(filepath.Join(e.Dir, fmt.Sprintf("pool-%s-%d", pool, n)), unix.LOCK_EX)
		}
		if !got {
			trace("complaints", e.Item+": all slots of "+pool+" are taken")
		}
	}
	trace("begun", e.Item)
	time.Sleep(time.Duration(10+mathrand.IntN(40)) * time.Millisecond) // simulates work
	trace("ended", e.Item)
	return 0
}

// flock acquires a kernel lock, which ends with this process.
func flock(path string, how int) bool {
	fd, err := unix.Open(path, unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		panic(err)
	}
	return unix.Flock(fd, how|unix.LOCK_NB) == nil
}

// create creates the space of a shop.
func (s *shop) create(t testing.TB) {
	t.Helper()
	s.Space = "7f0c7a39-0000-4000-8000-" + strings.ToLower(rand.Text()[:12])
	if s.Kind != "PostgreSQL" {
		s.Where = filepath.Join(t.TempDir(), "state.db")
		must(t, sqlstore.CreateSQLite(t.Context(), s.Where, s.Space))
		return
	}
	var err error
	s.Where, err = database.URL()
	must(t, err, sqlstore.CreateSpace(t.Context(), s.Where, s.Space))
}

// newShop creates a shop with many conflicting items.
func newShop(t *testing.T, kind string, items int) shop {
	t.Helper()
	s := shop{Kind: kind, Dir: t.TempDir()}
	s.create(t)
	q, _, done, err := s.queue(t.Context())
	must(t, err)
	defer func() { must(t, done()) }()
	var orders []sched.ItemSpec
	for i := range items {
		o := sched.ItemSpec{Workflow: fmt.Sprint("w", i), Project: fmt.Sprint("p", i%3), By: ada}
		for range mathrand.IntN(3) {
			path := fmt.Sprint("f", mathrand.IntN(10))
			if mathrand.IntN(3) == 0 {
				o.Locks = append(o.Locks, reads(path)...)
			} else {
				o.Locks = append(o.Locks, writes(path)...)
			}
		}
		switch mathrand.IntN(6) {
		case 0:
			o.Pools = []string{sched.PoolTest}
		case 1:
			o.Pools = []string{sched.PoolAPI}
		case 2:
			o.Class = "cpu"
		case 3:
			o.Pools = []string{sched.PoolAgent}
		}
		orders = append(orders, o)
	}
	_, err = q.Enqueue(t.Context(), orders...)
	must(t, err)
	return s
}

// hire starts a worker process.
func (s shop) hire(t *testing.T) *exec.Cmd {
	t.Helper()
	where, err := json.Marshal(s)
	must(t, err)
	cmd := exec.Command(os.Args[0], workerArg, string(where))
	cmd.Stderr = os.Stderr
	must(t, cmd.Start())
	return cmd
}

// Sixteen workers run, and some of them are repeatedly killed. Every item completes, the kernel
// locks show that caps and locks hold, and no process is left running.
//
// shows: SW-71 SW-74 DL-80 GP-11
func TestWorkersThatAreKilled(t *testing.T) {
	for _, kind := range []string{"SQLite", "PostgreSQL"} {
		t.Run(kind, func(t *testing.T) {
			const workers = 16
			items, lasts := 120, 4*time.Second
			if n := storetest.Torture(); n > 1 {
				items, lasts = 1_200, time.Minute
			}
			s := newShop(t, kind, items)
			crew := make([]*exec.Cmd, workers)
			for i := range crew {
				crew[i] = s.hire(t)
			}
			ended := make(chan struct{})
			stop := time.AfterFunc(lasts, func() { close(ended) })
			defer stop.Stop()
			kills := 0
		killing:
			for {
				select {
				case <-ended:
					break killing
				case <-time.After(time.Duration(50+mathrand.IntN(200)) * time.Millisecond):
				}
				i := mathrand.IntN(workers)
				crew[i].Process.Kill()
				crew[i].Wait()
				kills++
				crew[i] = s.hire(t)
			}
			for _, cmd := range crew { // each exits when nothing is left to do
				limit := time.AfterFunc(10*time.Minute, func() { cmd.Process.Signal(syscall.SIGQUIT) })
				if err := cmd.Wait(); err != nil {
					t.Errorf("a worker: %v", err)
				}
				limit.Stop()
			}
			t.Logf("%d workers were killed", kills)
			s.audit(t, items)
		})
	}
}

// audit checks the conditions that must hold once every item has ended.
func (s shop) audit(t *testing.T, items int) {
	t.Helper()
	if text, err := os.ReadFile(filepath.Join(s.Dir, "complaints")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("complaints: %s, %v", text, err)
	}
	st, err := s.open(t.Context())
	must(t, err)
	defer func() { must(t, st.Close()) }()
	begun, finished := s.count(t, "begun"), s.count(t, "ended")
	must(t, st.View(t.Context(), func(r store.Reader) error {
		all, err := r.Items(store.ItemQuery{Limit: items + 1})
		must(t, err)
		if len(all) != items {
			t.Errorf("%d items, not %d", len(all), items)
		}
		again := 0
		for _, it := range all {
			if it.Status != lockkeeper.ItemCompleted || finished[it.ID] < 1 || begun[it.ID] > it.Attempts || finished[it.ID] > it.Attempts {
				t.Errorf("%s is %s after %d attempts, begun %d times, ended %d times: %+v", it.ID, it.Status, it.Attempts, begun[it.ID], finished[it.ID], it.Failure)
			}
			if it.Attempts > 1 {
				again++
			}
		}
		t.Logf("%d items needed more than one attempt", again)
		for _, pool := range []string{sched.PoolAgent, sched.PoolAPI, sched.PoolTest, sched.PoolCPU} {
			n, err := r.SlotsTaken(pool)
			must(t, err)
			if n != 0 {
				t.Errorf("%d slots of %s are lost", n, pool)
			}
		}
		recs, err := r.List(0, 100)
		must(t, err)
		if len(recs) != 0 {
			t.Errorf("%d grants are left", len(recs))
		}
		return nil
	}))
	if left := stillRunning(s.Dir); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
}

func (s shop) count(t *testing.T, kind string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.Dir, kind))
	must(t, err)
	n := map[string]int{}
	for _, id := range strings.Fields(string(text)) {
		n[id]++
	}
	return n
}

// stillRunning returns the processes whose command line contains a directory.
func stillRunning(dir string) (left []string) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		text, err := os.ReadFile(path)
		if err == nil && bytes.Contains(text, []byte(dir)) {
			left = append(left, path)
		}
	}
	return left
}
