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

	"lockkeeper/durable"
	"lockkeeper/internal/compat/lease"
)

// QueueFile has the planned moves; the path is relative to the root.
const QueueFile = ".autonomous_runs/pending_moves.json"

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

// settle dequeues the moves that were made, and records why the others failed.
func (q *queue) settle(refused map[string]string, isThere func(string) bool) {
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

// The queue's lease file is held only while the file is read and written. A process that holds
// it longer is dead. Both durations together are below the default timeout of the next run.
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
