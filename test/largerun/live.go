package largerun

import (
	"fmt"
	"os"

	"lockkeeper"
	"lockkeeper/lock"
)

// RunningItem returns the id of an item with an agent at work.
func (r *Run) RunningItem() string { return r.running[0].item }

// Progress returns what the running items say about their progress since the last Change.
func (r *Run) Progress() string { return fmt.Sprintf("step %d", r.changes) }

// Change changes the progress of every item that runs, in one transaction, and adds a line to the
// log of some of the calls. It also notes a decision, because progress alone is no event.
func (r *Run) Change() {
	r.t.Helper()
	ctx := r.t.Context()
	r.changes++
	must(r.t, r.App.Locks.Update(ctx, func(tx *lock.Tx) error {
		for i, w := range r.running {
			it, err := tx.Item(w.item)
			if err != nil {
				return err
			}
			if it.Status != lockkeeper.ItemDispatched {
				continue // a person canceled it
			}
			next := it.Clone()
			next.Note = r.Progress()
			next.Phase = []string{apply, test, verify}[(i+r.changes)%3]
			if err := tx.SaveItem(next); err != nil {
				return err
			}
		}
		_, err := tx.Append(lockkeeper.Event{At: tx.Now().Wall, Kind: lockkeeper.EventDecided, Actor: lockkeeper.Actor{Name: "ada", Kind: lockkeeper.ActorPerson}, Reason: r.Progress()})
		return err
	}))
	for i, w := range r.running {
		if i%10 == r.changes%10 {
			r.addLine(w)
		}
	}
}

// addLine adds a line to the log of a call.
func (r *Run) addLine(w *working) {
	r.t.Helper()
	f, err := os.OpenFile(w.log, os.O_WRONLY|os.O_APPEND, 0)
	must(r.t, err)
	_, err = f.WriteString(logLine(r.now(), r.changes, w))
	must(r.t, err, f.Close())
}
