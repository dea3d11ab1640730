package acts

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
)

// WrongStatusError refuses to start a phase of a unit or batch in another status.
type WrongStatusError struct {
	Unit   string // unit, or unit/batch
	Status string
	Phase  string // phase that the caller wanted to start
	Next   string
}

func (e *WrongStatusError) Error() string {
	return lockkeeper.JoinNext(fmt.Sprintf("phase %s of %s cannot start: it is %s", e.Phase, e.Unit, e.Status), e.Next)
}

func (e *WrongStatusError) NextStep() string { return e.Next }

func (e *WrongStatusError) Code() lockkeeper.Code { return lockkeeper.CodeRefused }

// Unwrap returns the refusal that every surface knows.
func (e *WrongStatusError) Unwrap() error {
	return &lockkeeper.RefusedError{Act: "start the phase " + e.Phase + " of " + e.Unit, Reason: "it is " + e.Status, Next: e.Next}
}

// Phase starts a phase of a unit, batch or screen. It does so in the current run of this process,
// or in a new run, which continues until it needs a decision. It retries what failed in this phase.
// If the phase cannot start now, it returns a *WrongStatusError.
func (r *Runs) Phase(ctx context.Context, name, phase string, by lockkeeper.Actor) error {
	flowName, err := r.flowName()
	if err != nil {
		return err
	}
	d, err := Open(ctx, r.app, flowName, by)
	if err != nil {
		return err
	}
	p, ok := d.Flow.Phase(phase)
	if !ok || p.Output == "" || p.Executor == flow.Human {
		return &lockkeeper.InputError{Field: "phase", Value: phase, Reason: "the flow " + flowName + " has no phase of this name that can be started", Next: "use one of " + strings.Join(startable(d.Flow), ", ")}
	}
	at, err := r.whereIs(ctx, d, name)
	if err != nil {
		return err
	}
	failed, err := d.failedIn(ctx, at, phase)
	switch {
	case err != nil:
		return err
	case len(failed) > 0:
		v, err := d.Retry(ctx, failed, "")
		if err := cmp.Or(err, v.Err()); err != nil {
			return err
		}
	case !at.canStart(d.Flow, p):
		return &WrongStatusError{Unit: name, Status: at.status(), Phase: phase, Next: d.before(at, p)}
	}
	return r.want(ctx, d, at, phase)
}

func startable(f flow.Flow) (names []string) {
	for _, p := range f.Phases {
		if p.Output != "" && p.Executor != flow.Human {
			names = append(names, p.Name)
		}
	}
	return names
}

// flowName returns the flow of the current run, otherwise the default flow.
func (r *Runs) flowName() (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.going != nil && r.going.Flow != "" {
		return r.going.Flow, nil
	}
	return conduct.FlowName(r.app, "", "")
}

// where is the state of a unit or a part of it.
type where struct {
	unit  *progress.Unit
	part  string // a batch or screen; empty: all of the unit
	state run.UnitState
}

func (at where) name() string {
	if at.part == "" {
		return at.unit.Name
	}
	return at.unit.Name + "/" + at.part
}

func (r *Runs) whereIs(ctx context.Context, d *Decider, name string) (at where, err error) {
	known, _, err := conduct.Discovered(r.app, d.Flow.Name)
	if len(known) == 0 && err != nil {
		return at, err
	}
	unknown := func(known []string) error {
		return &lockkeeper.InputError{Field: "unit", Value: name, Reason: "the flow " + d.Flow.Name + " has no such unit or part of a unit", Next: didYouMean(name, known)}
	}
	unit := name
	for !slices.Contains(known, unit) { // names of units can contain slashes
		cut := strings.LastIndexByte(unit, '/')
		if cut < 0 {
			return at, unknown(known)
		}
		unit = unit[:cut]
	}
	at.part = strings.TrimPrefix(name[len(unit):], "/")
	c, err := conduct.New(ctx, r.app, conduct.Options{Flow: d.Flow.Name, Only: []string{unit}, Env: r.env, By: d.By})
	if err != nil {
		return at, err
	}
	seen, err := c.Survey(ctx)
	if err != nil {
		return at, err
	}
	st, err := seen.State(ctx)
	if err != nil {
		return at, err
	}
	at.state = st.Units[0]
	if at.unit, err = d.Tracker.Unit(ctx, unit); err != nil {
		return at, err
	}
	var parts []string
	for _, b := range at.state.Batches {
		parts = append(parts, unit+"/"+b.ID)
	}
	if at.part != "" && !slices.Contains(parts, name) {
		return at, unknown(parts)
	}
	return at, nil
}

// status returns the status of the part, or of the unit.
func (at where) status() string {
	for _, b := range at.state.Batches {
		if b.ID == at.part {
			return b.Status
		}
	}
	return at.state.Status
}

// canStart reports whether a phase is next, and does not run yet.
func (at where) canStart(of flow.Flow, p flow.Phase) bool {
	idle := func(status, item string) bool { return item == "" || status == flow.Queued }
	if p.Unit != flow.BatchUnit {
		return at.unit.Phase() == p.Name && !at.unit.AwaitsReview && idle(at.state.Status, at.state.Item)
	}
	for _, b := range at.unit.Batches {
		next := b.Next
		if next == progress.LandPhase {
			next = of.LastOfBatch() // the phase in which landing is queued
		}
		i := slices.IndexFunc(at.state.Batches, func(s run.BatchState) bool { return s.ID == b.ID })
		if i < 0 || at.part != "" && b.ID != at.part || next != p.Name || !b.Approved || len(b.Blocked) > 0 {
			continue
		}
		if idle(at.state.Batches[i].Status, at.state.Batches[i].Item) {
			return true
		}
	}
	return false
}

// failedIn returns the names of items that failed in a phase.
func (d *Decider) failedIn(ctx context.Context, at where, phase string) (names []string, err error) {
	all, err := conduct.Failures(ctx, d.App, d.Flow.Name)
	for _, f := range all {
		if f.Unit == at.unit.Name && f.Phase == phase && (at.part == "" || f.Part == at.part) && !slices.Contains(names, f.Name()) {
			names = append(names, f.Name())
		}
	}
	return names, err
}

// next returns the next phase, or "" if there is none.
func (at where) next() string {
	if b, ok := at.unit.Batch(at.part); ok {
		return b.Next
	}
	return at.unit.Phase()
}

// before returns what must happen before a phase can start.
func (d *Decider) before(at where, p flow.Phase) string {
	order, next := startable(d.Flow), at.next()
	b, isBatch := at.unit.Batch(at.part)
	switch {
	case at.status() == flow.Failed:
		return d.Command("decide", "retry", at.name())
	case at.unit.AwaitsReview:
		return d.Command("decide", "approve", "plan", at.unit.Name)
	case len(at.unit.OpenDecisions()) > 0:
		return d.Command("decide")
	case isBatch && len(b.Blocked) > 0:
		return "it comes after " + strings.Join(b.Blocked, ", ")
	case next == p.Name:
		return "wait until it has ended"
	case next == "" || next == progress.LandPhase || slices.Index(order, p.Name) < slices.Index(order, next):
		return "to redo it: " + d.Command("decide", "redo", at.name(), p.Name)
	}
	return "the phase " + next + " comes first"
}

// want adds work to the current run, or starts a new run for it.
func (r *Runs) want(ctx context.Context, d *Decider, at where, phase string) error {
	covered, err := r.alsoWant(at)
	if err != nil {
		return err
	}
	if covered {
		return d.tell(ctx, []Done{{Ref: planOf(at.unit.Name), What: "starts the phase " + phase + " of " + at.name()}})
	}
	_, err = r.start(ctx, conduct.Options{Flow: d.Flow.Name, Only: []string{at.name()}, By: d.By}, true)
	return err
}

// alsoWant adds work to the current run. It returns false if there is no run.
func (r *Runs) alsoWant(at where) (bool, error) {
	name := at.name()
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.going
	switch {
	case g == nil:
		return false, nil
	case g.stopping:
		return false, &lockkeeper.RefusedError{Act: "starting a phase of " + name, Reason: "the current run is stopping", Next: "start the phase when the run has ended"}
	case g.wanted != nil:
		g.wanted[name] = true
		if !slices.Contains(g.Units, at.unit.Name) {
			g.Units = append(g.Units, at.unit.Name)
		}
		g.asked++
		return true, nil
	case len(g.only) == 0 || slices.Contains(g.only, at.unit.Name) || slices.Contains(g.only, name):
		return true, nil
	}
	return false, &lockkeeper.RefusedError{Act: "starting a phase of " + name, Reason: "the current run covers only " + strings.Join(g.only, ", "), Next: "wait until the run ends, or stop it"}
}

func (r *Runs) isWanted(g *going, unit, part string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return g.wanted[unit] || g.wanted[unit+"/"+part]
}
