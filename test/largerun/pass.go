package largerun

import (
	"context"
	"path"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/documents"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/machine/process"
	"lockkeeper/sched"
	"lockkeeper/store"
)

// A working is a piece of work that was queued, and then dispatched.
type working struct {
	unit  *unit
	phase string
	batch *flow.Batch // nil: a phase of the unit
	item  string      // the id of its item
	job   *sched.Job
	began time.Time
	ends  time.Time
	log   string // the log of the call that runs
}

func (w *working) name() string {
	if w.batch == nil {
		return w.unit.name
	}
	return w.unit.name + "/" + w.batch.ID
}

// These are phases of the flow.
const (
	analyze    = "analyze"
	extract    = "extract"
	synthesize = "synthesize"
	batchPlan  = "batch_plan"
	apply      = "apply"
	test       = "test"
	verify     = "verify"
	fixTests   = "fix_tests"
)

// A batch takes as long as this many phases of a unit.
const batchPhases = 5

// register makes this process the worker of the run.
func (r *Run) register() {
	r.t.Helper()
	self, err := process.Self()
	must(r.t, err)
	r.worker = lockkeeper.Worker{ID: "w1", Node: self.Host, Process: &self, Roots: []string{r.root()}, Only: true, Slots: max(1, r.opt.Running), Began: r.began}
	must(r.t, r.App.Store.Update(r.t.Context(), func(tx store.Tx) error {
		r.worker.Expires = tx.Now().Lease.Add(24 * time.Hour)
		return tx.PutWorker(r.worker)
	}))
}

// root is the queue's name of the flow.
func (r *Run) root() string { return "flow/" + r.flow.Name }

// pass lets the run pass until only people, and the agents that still run, can continue it.
func (r *Run) pass() {
	r.t.Helper()
	r.planned = map[string]*working{}
	const share = 0.8 // of the time of the run
	work := r.opt.Units*4 + (r.opt.Failures+r.opt.Landings+r.opt.Reviews)*batchPhases
	r.pace = min(2*time.Minute, time.Duration(share*float64(length)*float64(max(1, r.opt.Running))/float64(max(1, work))))
	for _, u := range r.units {
		r.enqueue(&working{unit: u, phase: analyze})
	}
	var busy []*working
	for {
		for w := r.dispatch(); w != nil; w = r.dispatch() {
			busy = append(busy, w)
		}
		if len(busy) == 0 {
			return
		}
		next := slices.MinFunc(busy, func(a, b *working) int { return a.ends.Compare(b.ends) })
		busy = slices.Delete(busy, slices.Index(busy, next), slices.Index(busy, next)+1)
		r.set(next.ends)
		r.end(next)
	}
}

// dispatchLast dispatches what still runs at the end: in several minutes, one after the other. Then
// it queues the work that waits.
func (r *Run) dispatchLast() {
	r.t.Helper()
	var agents, blocked, rest []*unit
	for _, u := range r.units {
		switch u.fate {
		case running:
			agents = append(agents, u)
		case waiting:
			blocked = append(blocked, u)
		case landed:
			rest = append(rest, u)
		}
	}
	const since = 8 * time.Minute
	for i, u := range agents {
		r.set(time.Now().Add(-since * time.Duration(len(agents)-i) / time.Duration(len(agents)+1)))
		if i == len(agents)-1 { // while a slot is free, locks are what these wait for
			for _, b := range blocked {
				r.enqueue(&working{unit: b, phase: apply, batch: &b.batches[0]})
			}
			if w := r.dispatch(); w != nil {
				r.t.Fatalf("%s does not wait for locks", w.name())
			}
		}
		r.enqueue(&working{unit: u, phase: apply, batch: &u.batches[0]})
		w := r.dispatch()
		if w == nil {
			r.t.Fatalf("%s does not start", u.name)
		}
		r.running = append(r.running, w)
		r.startCall(w)
		must(r.t, w.job.Note(r.t.Context(), "reads "+u.batches[0].WriteTargets[0]))
	}
	for _, u := range rest {
		if len(u.batches) > 1 {
			r.enqueue(&working{unit: u, phase: apply, batch: &u.batches[1]})
		}
	}
}

// enqueue queues work as a run does. The queue's key of work has the names of its parts.
func (r *Run) enqueue(w *working) {
	r.t.Helper()
	spec := sched.ItemSpec{Workflow: w.name(), Unit: string(flow.Controller), Phase: w.phase, Project: path.Dir(w.unit.name), Pools: []string{sched.PoolAgent}, Root: r.root(),
		By: lockkeeper.Actor{Name: "ada", Kind: lockkeeper.ActorPerson}, Estimate: r.pace}
	folder := path.Join(r.App.Config.Run.SidecarDir, documents.UnitPath(w.unit.name))
	own, what := path.Join(folder, w.phase+".json"), w.phase
	if w.batch != nil {
		spec.Unit = string(flow.BatchUnit)
		own = path.Join(folder, "batches", documents.FolderName(w.batch.ID))
		what = spec.Unit + "/" + documents.KeyName(w.batch.ID) + "@" + flow.Digest(*w.batch)[:8]
		for _, target := range w.batch.WriteTargets {
			l, err := r.App.Root.Resolve(r.App.Root.Dir(), target, lockkeeper.Write)
			must(r.t, err)
			spec.Locks = append(spec.Locks, l)
		}
	}
	spec.Locks = append(spec.Locks, lockkeeper.Lock{Target: lockkeeper.Target{Path: own, Kind: lockkeeper.File}, Mode: lockkeeper.Write})
	spec.Key = r.flow.Name + "/" + documents.KeyName(w.unit.name) + "/" + what
	items, err := r.queue.Enqueue(r.t.Context(), spec)
	must(r.t, err)
	if of, ok := run.WorkOf(items[0]); !ok || of.Name() != w.name() {
		r.t.Fatalf("the key %s is that of %+v", spec.Key, of)
	}
	w.item = items[0].ID
	r.planned[w.item] = w
}

// dispatch starts the next piece of work, or returns nil if nothing can start.
func (r *Run) dispatch() *working {
	r.t.Helper()
	job, err := r.queue.Dispatch(r.t.Context(), r.worker)
	must(r.t, err)
	if job == nil {
		return nil
	}
	w := r.planned[job.Item.ID]
	mean := r.pace
	if w.batch != nil {
		mean *= batchPhases
	}
	w.job, w.began = job, r.now()
	w.ends = w.began.Add(time.Duration((0.5 + r.chance.Float64()) * float64(mean)))
	return w
}

// end ends a piece of work, and queues what comes next.
func (r *Run) end(w *working) {
	r.t.Helper()
	ctx := r.t.Context()
	var failure error
	if w.batch == nil {
		r.endPhase(ctx, w)
	} else {
		failure = r.endBatch(ctx, w)
		w.unit.ended = w
	}
	_, err := w.job.Finish(ctx, failure, nil)
	must(r.t, err)
	if next := r.next(ctx, w); next != nil {
		r.enqueue(next)
	}
}

// next returns the next work of a unit, or nil if the unit has reached its state.
func (r *Run) next(ctx context.Context, w *working) *working {
	r.t.Helper()
	u := w.unit
	switch w.phase {
	case analyze:
		if u.fate != researched {
			return &working{unit: u, phase: extract}
		}
	case extract:
		return &working{unit: u, phase: synthesize}
	case synthesize:
		must(r.t, r.tracker.Audit(ctx, u.name))
		if u.fate != undecided {
			r.decide(ctx, u)
			return &working{unit: u, phase: batchPlan}
		}
	case batchPlan:
		if u.fate == planned {
			return nil
		}
		must(r.t, r.tracker.ApprovePlan(ctx, u.name, "ada"))
		if u.fate == failed || u.fate == landed || u.fate == reviewed {
			return &working{unit: u, phase: apply, batch: &u.batches[0]}
		}
	}
	return nil
}
