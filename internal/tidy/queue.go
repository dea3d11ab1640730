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
	"lockkeeper/lease"
)

// QueueFile is where planned moves are kept, from the root.
const QueueFile = ".autonomous_runs/pending_moves.json"

// Transfer is a file that is to be moved.
type Transfer struct {
	Phase     string    `json:"phase"`
	From      string    `json:"from"`
	To        string    `json:"to"`
	Reason    string    `json:"reason"`
	PlannedAt time.Time `json:"planned_at"`
	Attempts  int       `json:"attempts"`
	Problem   string    `json:"problem,omitempty"` // why it could not be moved the last time
}

// queue is what is planned and not done.
type queue struct {
	Moves []Transfer `json:"moves"`
}

// plan makes moves the plan of a phase. Of those that were planned before, it is
// remembered how they fared.
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

// settle takes what is moved off the queue, and notes why the rest is not.
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

// The queue's lease is held for as long as it takes to read and write a file: whoever
// has it for longer is gone. Both together are less than what the next run waits by
// default.
const (
	queueTTL   = 20 * time.Second
	queueGrace = 5 * time.Second
)

// queued changes the queue, alone.
func (r *run) queued(ctx context.Context, change func(*queue)) (err error) {
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

// readQueue reads the queue. One that is damaged is kept aside: what it planned is
// planned anew.
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
	r.Note(fmt.Sprintf("the queue of moves could not be read (%v); it is kept as %s, and a new one was begun", err, kept))
	return &queue{}, nil
}
