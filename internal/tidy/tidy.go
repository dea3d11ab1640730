package tidy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/durable"
	"lockkeeper/lease"
)

// Options of a run.
type Options struct {
	Root    string // of the codebase
	Owner   string
	Execute bool     // false: a dry run
	Only    []string // names of phases; none: all of them
	NoLease bool     // run without the lease, beside whoever else runs
	Read    bool     // of a dry run: report beside whoever runs, under a lease of those that only read
	Timeout time.Duration
	TTL     time.Duration
	Under   []string // paths of leases that this run works under already

	// Check says why a move cannot be made now; empty: it can.
	Check func(context.Context, Transfer) string
	// Land makes moves through the gate, as one unit.
	Land func(ctx context.Context, reason string, moves []Transfer) (landing uint64, err error)
	Note func(string) // is told what a person should know
}

// Report is what a run did, or would do.
type Report struct {
	Executed bool          `json:"executed"`
	Leased   bool          `json:"leased"`
	Lease    lease.Metrics `json:"lease"`
	Phases   []PhaseReport `json:"phases"`
}

// PhaseReport is what one phase did, or would do.
type PhaseReport struct {
	Number  int    `json:"number"`
	Name    string `json:"name"`
	Title   string `json:"title"`
	Moves   []Done `json:"moves"`
	Failed  bool   `json:"failed,omitempty"`  // the run ended in it; the error says why
	Landing uint64 `json:"landing,omitempty"` // to undo it
}

// Done is one move, and what became of it.
type Done struct {
	Transfer
	Moved bool `json:"moved"`
}

// run is one run on its way.
type run struct {
	Options
	leases *lease.Stack
	whole  *lease.Lease // on the run; nil: without
}

// Run tidies a codebase. The report is never nil, and tells what was done also when the
// run failed.
func Run(ctx context.Context, opt Options) (report *Report, err error) {
	r := &run{Options: opt, leases: &lease.Stack{Under: opt.Under}}
	report = &Report{Executed: opt.Execute}
	phases, err := r.wanted()
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, r.leases.Close(context.WithoutCancel(ctx))) }()
	if !opt.NoLease {
		if err := r.begin(ctx, len(phases) < len(Phases())); err != nil {
			return report, err
		}
		report.Leased = true
		defer func() { report.Lease = r.whole.Metrics() }()
	}
	for _, ph := range phases {
		done, err := r.phase(ctx, ph)
		done.Failed = err != nil
		report.Phases = append(report.Phases, done)
		if err != nil {
			return report, fmt.Errorf("%s: %w", ph.Title, err)
		}
	}
	return report, nil
}

// wanted are the phases that were asked for, in their order.
func (r *run) wanted() (list []Phase, err error) {
	for _, ph := range Phases() {
		if len(r.Only) == 0 || slices.Contains(r.Only, ph.Name) {
			list = append(list, ph)
		}
	}
	for _, name := range r.Only {
		if !slices.ContainsFunc(list, func(ph Phase) bool { return ph.Name == name }) {
			return nil, &lockkeeper.InputError{Field: "phase", Value: name, Reason: "there is no such phase", Next: "give one of " + PhaseNames()}
		}
	}
	return list, nil
}

// begin takes the lease on the run. A dry run that only reads has another one, and is told
// who is at work: what it reports may be moved meanwhile.
func (r *run) begin(ctx context.Context, some bool) error {
	r.whole = lease.New(r.lock("tidy"), r.lease(some))
	if r.Read && !r.Execute {
		other, err := lease.Look(r.whole.Path(), lease.Defaults())
		if err != nil {
			return err
		}
		if other.State == lease.Held {
			r.Note("another run is at work, and may move what is shown here: " + other.String())
		}
		r.whole = lease.New(r.lock("dry-run"), r.lease(true))
	}
	return r.leases.Acquire(ctx, r.whole, r.Timeout)
}

// lock is the path of a lease.
func (r *run) lock(name string) string { return filepath.Join(r.Root, lease.Dir, name+".lock") }

func (r *run) lease(shared bool) lease.Options {
	opt := lease.Defaults()
	opt.Owner, opt.TTL, opt.Shared, opt.Note = r.Owner, r.TTL, shared, r.Note
	return opt
}

// phase does one phase.
func (r *run) phase(ctx context.Context, ph Phase) (done PhaseReport, err error) {
	done = ph.report()
	if err := r.renew(ctx, ph.Title); err != nil {
		return done, err
	}
	moves, err := r.plan(ctx, ph)
	if err != nil {
		return done, err
	}
	if r.Execute {
		return r.carryOut(ctx, ph, moves)
	}
	pending := durable.ReadJSONOr(filepath.Join(r.Root, QueueFile), queue{})
	for _, m := range moves {
		if n := pending.find(m.From); n >= 0 && pending.Moves[n].Problem != "" {
			m.Attempts = pending.Moves[n].Attempts
			m.Reason += ", could not be moved before: " + pending.Moves[n].Problem
		}
		done.Moves = append(done.Moves, Done{Transfer: m})
	}
	return done, nil
}

// report is what a phase did that did nothing yet.
func (ph Phase) report() PhaseReport {
	n := slices.IndexFunc(Phases(), func(other Phase) bool { return other.Name == ph.Name })
	return PhaseReport{Number: n + 1, Name: ph.Name, Title: ph.Title, Moves: []Done{}}
}

// renew is at the boundary of a phase. That it fails is told; only a lease that
// somebody else has ends the run.
func (r *run) renew(ctx context.Context, phase string) error {
	if r.whole == nil {
		return nil
	}
	err := r.whole.Phase(ctx, phase)
	var lost *lease.LostError
	if errors.As(err, &lost) {
		return lost
	}
	if err != nil {
		r.Note("the lease could not be renewed, and the run goes on: " + err.Error())
	}
	return nil
}

// plan finds what a phase would move. A file never takes another one's place.
func (r *run) plan(ctx context.Context, ph Phase) ([]Transfer, error) {
	moves, err := ph.plan(r.Root)
	if err != nil {
		return nil, err
	}
	taken := map[string]string{}
	for i := range moves {
		m := &moves[i]
		m.Phase, m.PlannedAt = ph.Name, time.Now().UTC().Round(time.Second)
		_, err := os.Lstat(filepath.Join(r.Root, m.To))
		switch {
		case err == nil:
			m.Problem = "there is a file already where it belongs"
		case taken[m.To] != "":
			m.Problem = "it belongs where " + taken[m.To] + " goes"
		default:
			m.Problem = r.Check(ctx, *m)
		}
		taken[m.To] = m.From
	}
	return moves, nil
}

// carryOut moves what a phase planned.
func (r *run) carryOut(ctx context.Context, ph Phase, moves []Transfer) (done PhaseReport, err error) {
	done = ph.report()
	if err := r.queued(ctx, func(q *queue) { q.plan(ph.Name, moves) }); err != nil {
		return done, err
	}
	refused := map[string]string{}
	var movable []Transfer
	for _, m := range moves {
		if m.Problem != "" {
			refused[m.From] = m.Problem
		} else {
			movable = append(movable, m)
		}
	}
	landing, failed := r.land(ctx, ph, movable, refused)
	done.Landing = landing
	var blocked *lockkeeper.BlockedError
	switch {
	case errors.As(failed, &blocked): // somebody began to work on them since the plan
		for _, m := range movable {
			refused[m.From] = cmp.Or(refused[m.From], heldBy(blocked, m))
		}
		failed = nil
	case failed != nil:
		for _, m := range movable {
			refused[m.From] = cmp.Or(refused[m.From], failed.Error())
		}
	}
	for _, m := range moves {
		m.Problem = refused[m.From]
		done.Moves = append(done.Moves, Done{Transfer: m, Moved: m.Problem == ""})
	}
	err = r.queued(context.WithoutCancel(ctx), func(q *queue) { q.settle(refused, r.isThere) })
	return done, errors.Join(failed, err)
}

// heldBy is who keeps one file from being moved. A phase is moved as one: what is free
// stays with the rest.
func heldBy(blocked *lockkeeper.BlockedError, m Transfer) string {
	for _, c := range blocked.Conflicts {
		if c.Path == m.From || c.Path == m.To {
			return fmt.Sprintf("%s is held by %s since %s", c.Path, c.Holder, c.AcquiredAt.UTC().Format(time.RFC3339))
		}
	}
	return "others of this phase are held, and it is moved as one"
}

// land moves files under the phase's own lease, as far as they are still there.
func (r *run) land(ctx context.Context, ph Phase, moves []Transfer, refused map[string]string) (landing uint64, err error) {
	if r.whole != nil {
		if err := r.leases.Acquire(ctx, lease.New(r.lock(ph.Name), r.lease(false)), r.Timeout); err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, r.leases.Release(context.WithoutCancel(ctx))) }()
	}
	var there []Transfer
	for _, m := range moves {
		if r.isThere(m.From) {
			there = append(there, m)
		} else {
			refused[m.From] = "it is gone by now"
		}
	}
	if len(there) == 0 {
		return 0, nil
	}
	return r.Land(ctx, "tidy: "+ph.Title, there)
}

func (r *run) isThere(path string) bool {
	_, err := os.Lstat(filepath.Join(r.Root, path))
	return err == nil
}
