package conduct

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/durable"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// A Run is one run of a flow. It may be interrupted and resumed any number of times. Its
// budget is for all of them together.
type Run struct {
	ID    string    `json:"id"`
	Flow  string    `json:"flow"`
	Plan  string    `json:"plan,omitempty"` // the plan file, absolute, if the flow has one
	Began time.Time `json:"began"`
	Ended time.Time `json:"ended,omitzero"`

	Conductor *lockkeeper.Process `json:"conductor,omitempty"` // the process that conducts the run, or died while it did
	Failure   string              `json:"failure,omitempty"`   // why conducting the run ended early; empty: it did not end early

	Prediction *Prediction `json:"prediction,omitempty"` // made when the run started or resumed last
	Newest     *Prediction `json:"newest,omitempty"`     // the newest prediction, of the time that is left
	Pause      *run.Pause  `json:"pause,omitempty"`      // why nothing starts; nil: the run is not paused

	Weights  map[string]float64 `json:"weights,omitempty"`  // the usual seconds of each phase when the run began
	Recorded bool               `json:"recorded,omitempty"` // some of the weights come from recorded calls
}

// Crash returns why conducting the run ended early, or "" if it did not. The queue is kept, and the
// next run continues.
func (r *Run) Crash(a *project.Project) string {
	switch {
	case r == nil || !r.Ended.IsZero():
		return ""
	case r.Conductor != nil && a.Host.Liveness(*r.Conductor) == lockkeeper.ProcessDead:
		return "the process that conducted the run died"
	}
	return r.Failure
}

// FailedBefore names the tests that failed on the tree with which the run started. It returns "" if
// none did, or if they are not known.
func (r *Run) FailedBefore(a *project.Project) (string, error) {
	if r == nil {
		return "", nil
	}
	b, err := run.ReadBaseline(a.Below(baselineFile))
	if err != nil || b == nil || b.Run != r.ID || len(b.Failures) == 0 {
		return "", err
	}
	return b.What(), nil
}

func runPath(a *project.Project) string { return filepath.Join(a.Below(project.DirName), "run.json") }

// CurrentRun returns the unfinished run, or else the last one. It returns nil if there was no
// run.
func CurrentRun(a *project.Project) (*Run, error) {
	r, err := durable.ReadJSON[Run](runPath(a))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return &r, err
}

// runFor returns the id of the run to conduct: the unfinished one, or else a new one.
func runFor(ctx context.Context, a *project.Project, o Options) (id string, err error) {
	if !o.New {
		id, err = unfinishedRun(a, o.Flow)
	}
	switch {
	case err != nil:
		return id, err
	case id == "":
		return NewRun(ctx, a, o.Flow, o.Plan)
	case o.Plan == "":
		return id, nil
	}
	return id, changeRun(ctx, a, func(r *Run) { r.Plan = PlanPath(a, o.Plan) })
}

// PlanPath returns the absolute path of a plan as a person typed it.
func PlanPath(a *project.Project, plan string) string {
	if plan == "" || filepath.IsAbs(plan) {
		return plan
	}
	return filepath.Join(a.WorkDir, plan)
}

// planFor returns the plan of the options, or else that of the current run.
func planFor(a *project.Project, o Options) (string, error) {
	if o.Plan != "" || o.Flow != flow.ForPlan().Name {
		return o.Plan, nil
	}
	last, err := CurrentRun(a)
	if err != nil || last == nil || last.Flow != o.Flow {
		return "", err
	}
	return last.Plan, nil
}

// unfinishedRun returns the id of the unfinished run of a flow, or "" if there is none.
func unfinishedRun(a *project.Project, name string) (string, error) {
	last, err := CurrentRun(a)
	if err != nil || last == nil || !last.Ended.IsZero() {
		return "", err
	}
	if last.Flow != name {
		return "", &lockkeeper.InputError{Field: "flow", Value: name, Reason: "a run of the flow " + last.Flow + " is not finished", Next: "lockkeeper run --flow " + last.Flow + ", or lockkeeper run --flow " + name + " --new"}
	}
	return last.ID, nil
}

// NewRun records a new run and returns its id.
func NewRun(ctx context.Context, a *project.Project, name, plan string) (string, error) {
	r := Run{ID: time.Now().UTC().Format("20060102T150405.000"), Flow: name, Plan: PlanPath(a, plan), Began: time.Now().UTC()}
	return r.ID, durable.WriteJSON(ctx, runPath(a), r, 0o600)
}

// EndRun marks the current run as ended.
func EndRun(ctx context.Context, a *project.Project) error {
	return changeRun(ctx, a, func(r *Run) { r.Ended = time.Now().UTC() })
}

func changeRun(ctx context.Context, a *project.Project, change func(*Run)) error {
	r, err := CurrentRun(a)
	if err != nil || r == nil {
		return err
	}
	change(r)
	return durable.WriteJSON(ctx, runPath(a), r, 0o600)
}

// conductorLock returns the lock of the process that conducts the flows of the space.
func conductorLock() []lockkeeper.Lock {
	return []lockkeeper.Lock{{Target: lockkeeper.Target{Path: project.DirName + "/conductor", Kind: lockkeeper.File}, Mode: lockkeeper.Write}}
}

// conductorTTL is how long a machine that is gone keeps another one from conducting.
const conductorTTL = time.Minute

// Lease acquires the conductor's lock for a holder. If another process holds it, Lease returns a
// *lockkeeper.BlockedError.
func Lease(ctx context.Context, a *project.Project, holder string) (*lock.Grant, error) {
	self, err := process.Self() // if this process dies, the lease ends at once
	if err != nil {
		return nil, err
	}
	var ttl time.Duration // on one machine a dead process is noticed at once
	if a.Config.Deployment == config.MultiNode {
		policy, err := a.Locks.Policy("")
		if err != nil {
			return nil, err
		}
		ttl = min(conductorTTL, policy.KeptTTL())
	}
	g, err := a.Locks.TryAcquire(ctx, lockkeeper.Request{Holder: holder, Locks: conductorLock(), Process: &self, Kept: true, TTL: ttl})
	if err != nil {
		return nil, err
	}
	g.Keep()
	return g, nil
}

// Holder returns the holder of the conductor's lock, or "" if no process conducts.
func Holder(ctx context.Context, a *project.Project) (string, error) {
	found, err := a.Locks.CheckConflicts(ctx, conductorLock())
	c, _ := ConductorIn(found)
	return c.Holder, err
}

// ConductorIn returns the process that conducts, from the conflicts of the conductor's lock. Other grants on the
// directory above that lock, such as one on the whole tree, conflict with it too.
func ConductorIn(found []lockkeeper.ConflictInfo) (conductor lockkeeper.ConflictInfo, ok bool) {
	i := slices.IndexFunc(found, func(c lockkeeper.ConflictInfo) bool { return c.BlockingPath == conductorLock()[0].Path })
	if i < 0 {
		return conductor, false
	}
	return found[i], true
}

// LeaseRecord returns the record of the conductor's lock. It returns nil if the lock is free or
// has expired, or its process is known to be dead.
func LeaseRecord(a *project.Project, r store.Reader) (*store.Record, error) {
	found, _, err := r.Overlapping(store.Query{Locks: conductorLock(), Before: store.HeldOnly})
	for _, o := range found {
		rec := o.Record
		over := rec.Expires != 0 && rec.Expires <= r.Now().Lease
		if !over && slices.ContainsFunc(rec.Locks, func(l lockkeeper.Lock) bool { return l.Path == conductorLock()[0].Path }) && (rec.Process == nil || a.Host.Liveness(*rec.Process) != lockkeeper.ProcessDead) {
			return rec, err
		}
	}
	return nil, err
}
