package tidy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/durable"
	"lockkeeper/internal/compat/lease"
)

// Options configure a run.
type Options struct {
	Root      string // root of the codebase
	Owner     string
	Execute   bool     // false for a dry run
	Only      []string // names of phases; empty for all
	NoLease   bool     // run without a lease file, even beside other runs
	Read      bool     // for a dry run: use a shared lease file, beside other runs
	Timeout   time.Duration
	TTL       time.Duration
	Inherited []string // lease files that this run's parent holds for it

	// Check returns why a move cannot be made now, or "".
	Check func(context.Context, Transfer) string
	Land  func(ctx context.Context, reason string, moves []Transfer) (landing uint64, err error)
	Note  func(string) // receives messages for the person
}

// A Report describes the moves that a run made, or would make.
type Report struct {
	Executed bool          `json:"executed"`
	Leased   bool          `json:"leased"`
	Lease    lease.Metrics `json:"lease"`
	Phases   []PhaseReport `json:"phases"`
}

// A PhaseReport describes the moves that one phase made, or would make.
type PhaseReport struct {
	Number  int          `json:"number"`
	Name    string       `json:"name"`
	Title   string       `json:"title"`
	Moves   []MoveResult `json:"moves"`
	Failed  bool         `json:"failed,omitempty"`  // the run ended in this phase; the error says why
	Landing uint64       `json:"landing,omitempty"` // number of the landing, to undo the phase
}

// A MoveResult is one move and whether it was made.
type MoveResult struct {
	Transfer
	Moved bool `json:"moved"`
}

type run struct {
	Options
	leases *lease.Stack
	whole  *lease.Lease // the lease of the whole run; nil without a lease
}

// Run tidies a codebase. The report is never nil and lists the completed work even if the run
// failed.
func Run(ctx context.Context, opt Options) (report *Report, err error) {
	r := &run{Options: opt, leases: &lease.Stack{Inherited: opt.Inherited}}
	report = &Report{Executed: opt.Execute}
	phases, err := r.phases()
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

func (r *run) phases() (list []Phase, err error) {
	for _, ph := range Phases() {
		if len(r.Only) == 0 || slices.Contains(r.Only, ph.Name) {
			list = append(list, ph)
		}
	}
	for _, name := range r.Only {
		if !slices.ContainsFunc(list, func(ph Phase) bool { return ph.Name == name }) {
			return nil, &lockkeeper.InputError{Field: "phase", Value: name, Reason: "unknown phase", Next: "give one of " + PhaseNames()}
		}
	}
	return list, nil
}

// begin acquires the lease file of the run. A dry run that only reads uses another one,
// and notes a concurrent run, which may move files meanwhile.
func (r *run) begin(ctx context.Context, some bool) error {
	r.whole = lease.New(r.lock("tidy"), r.lease(some))
	if r.Read && !r.Execute {
		other, err := lease.Inspect(r.whole.Path(), lease.Defaults())
		if err != nil {
			return err
		}
		if other.State == lease.Held {
			r.Note("another run is active and may move the files shown here: " + other.String())
		}
		r.whole = lease.New(r.lock("dry-run"), r.lease(true))
	}
	return r.leases.Acquire(ctx, r.whole, r.Timeout)
}

func (r *run) lock(name string) string { return filepath.Join(r.Root, lease.Dir, name+".lock") }

func (r *run) lease(shared bool) lease.Options {
	opt := lease.Defaults()
	opt.Owner, opt.TTL, opt.Shared, opt.Note = r.Owner, r.TTL, shared, r.Note
	return opt
}

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
		return r.execute(ctx, ph, moves)
	}
	pending := durable.ReadJSONOr(filepath.Join(r.Root, QueueFile), queue{})
	for _, m := range moves {
		if n := pending.find(m.From); n >= 0 && pending.Moves[n].Problem != "" {
			m.Attempts = pending.Moves[n].Attempts
			m.Reason += ", failed before: " + pending.Moves[n].Problem
		}
		done.Moves = append(done.Moves, MoveResult{Transfer: m})
	}
	return done, nil
}

func (ph Phase) report() PhaseReport {
	n := slices.IndexFunc(Phases(), func(other Phase) bool { return other.Name == ph.Name })
	return PhaseReport{Number: n + 1, Name: ph.Name, Title: ph.Title, Moves: []MoveResult{}}
}

// renew renews the lease at the start of a phase. It returns an error only if another
// holder has the lease file; other failures are noted.
func (r *run) renew(ctx context.Context, phase string) error {
	if r.whole == nil {
		return nil
	}
	err := r.whole.Phase(ctx, phase)
	if lost, ok := errors.AsType[*lease.LostError](err); ok {
		return lost
	}
	if err != nil {
		r.Note("the lease file could not be renewed; the run continues: " + err.Error())
	}
	return nil
}

// plan returns the moves of a phase. A move never overwrites a file.
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
			m.Problem = "the target already exists"
		case taken[m.To] != "":
			m.Problem = taken[m.To] + " moves to the same target"
		default:
			m.Problem = r.Check(ctx, *m)
		}
		taken[m.To] = m.From
	}
	return moves, nil
}

func (r *run) execute(ctx context.Context, ph Phase, moves []Transfer) (done PhaseReport, err error) {
	done = ph.report()
	if err := r.changeQueue(ctx, func(q *queue) { q.plan(ph.Name, moves) }); err != nil {
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
	case errors.As(failed, &blocked): // another holder acquired the locks after the plan was made
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
		done.Moves = append(done.Moves, MoveResult{Transfer: m, Moved: m.Problem == ""})
	}
	err = r.changeQueue(context.WithoutCancel(ctx), func(q *queue) { q.dequeue(refused, r.exists) })
	return done, errors.Join(failed, err)
}

// heldBy says why one file was not moved. A phase moves all its files or none.
func heldBy(blocked *lockkeeper.BlockedError, m Transfer) string {
	for _, c := range blocked.Conflicts {
		if c.Path == m.From || c.Path == m.To {
			return fmt.Sprintf("%s is held by %s since %s", c.Path, c.Holder, c.AcquiredAt.UTC().Format(time.RFC3339))
		}
	}
	return "other files of this phase are locked, and a phase moves all or none"
}

// land moves the files that still exist, under the phase's own lease file.
func (r *run) land(ctx context.Context, ph Phase, moves []Transfer, refused map[string]string) (landing uint64, err error) {
	if r.whole != nil {
		if err := r.leases.Acquire(ctx, lease.New(r.lock(ph.Name), r.lease(false)), r.Timeout); err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, r.leases.Release(context.WithoutCancel(ctx))) }()
	}
	var there []Transfer
	for _, m := range moves {
		if r.exists(m.From) {
			there = append(there, m)
		} else {
			refused[m.From] = "the file no longer exists"
		}
	}
	if len(there) == 0 {
		return 0, nil
	}
	if landing, err = r.Land(ctx, "tidy: "+ph.Title, there); err == nil && ph.clean != nil {
		ph.clean(r.Root, there)
	}
	return landing, err
}

func (r *run) exists(path string) bool { return exists(filepath.Join(r.Root, path)) }

// QueueFile has the planned moves; the path is relative to the root.
const QueueFile = runsDir + "/pending_moves.json"

// A Transfer is one planned move of a file.
type Transfer struct {
	Phase     string    `json:"phase"`
	From      string    `json:"from"`
	To        string    `json:"to"`
	Reason    string    `json:"reason"`
	PlannedAt time.Time `json:"planned_at"`
	Attempts  int       `json:"attempts"`
	Problem   string    `json:"problem,omitempty"` // why the last attempt failed
}

// A queue has the moves that are planned and not done.
type queue struct {
	Moves []Transfer `json:"moves"`
}

// plan replaces the planned moves of a phase. Moves that were planned before keep their
// attempts and problems.
func (q *queue) plan(phase string, moves []Transfer) {
	before := queue{slices.Clone(q.Moves)}
	q.Moves = slices.DeleteFunc(q.Moves, func(m Transfer) bool { return m.Phase == phase })
	for _, m := range moves {
		if n := before.find(m.From); n >= 0 {
			m.PlannedAt, m.Attempts, m.Problem = before.Moves[n].PlannedAt, before.Moves[n].Attempts, cmp.Or(m.Problem, before.Moves[n].Problem)
		}
		q.Moves = append(q.Moves, m)
	}
}

// dequeue removes the moves that were made, and records why the others failed.
func (q *queue) dequeue(refused map[string]string, isThere func(string) bool) {
	q.Moves = slices.DeleteFunc(q.Moves, func(m Transfer) bool { return !isThere(m.From) })
	for n := range q.Moves {
		if why := refused[q.Moves[n].From]; why != "" {
			q.Moves[n].Problem = why
			q.Moves[n].Attempts++
		}
	}
}

func (q *queue) find(from string) int {
	return slices.IndexFunc(q.Moves, func(m Transfer) bool { return m.From == from })
}

// The queue's lease file is held only while the file is read and written. A process that holds it
// longer is dead. Lease and grace together are shorter than the default timeout of the next run.
const (
	queueTTL   = 20 * time.Second
	queueGrace = 5 * time.Second
)

// changeQueue changes the queue under its lease.
func (r *run) changeQueue(ctx context.Context, change func(*queue)) (err error) {
	opt := lease.Defaults()
	opt.Owner, opt.TTL, opt.Grace, opt.Note = r.Owner, queueTTL, queueGrace, r.Note
	if err := r.leases.Acquire(ctx, lease.New(r.lock("queue"), opt), r.Timeout); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.leases.Release(context.WithoutCancel(ctx))) }()
	q, err := r.readQueue()
	if err != nil {
		return err
	}
	change(q)
	if q.Moves == nil {
		q.Moves = []Transfer{}
	}
	return durable.WriteJSON(ctx, filepath.Join(r.Root, QueueFile), q, 0o644)
}

// readQueue reads the queue. A damaged queue is moved aside, and its moves are planned
// again.
func (r *run) readQueue() (*queue, error) {
	file := filepath.Join(r.Root, QueueFile)
	q, err := durable.ReadJSON[queue](file)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return &q, nil
	}
	if _, statErr := os.Lstat(file); statErr != nil {
		return nil, err
	}
	kept := file + ".corrupt." + time.Now().UTC().Format("20060102T150405.000000000Z")
	if err := os.Rename(file, kept); err != nil {
		return nil, err
	}
	r.Note(fmt.Sprintf("the queue of moves is unreadable (%v); it was moved to %s, and a new one was created", err, kept))
	return &queue{}, nil
}
