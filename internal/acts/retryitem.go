package acts

import (
	"context"

	"lockkeeper"
	"lockkeeper/internal/app"
	"lockkeeper/internal/pipeline"
)

// RetryItem puts an item that failed back into the queue. The note is for whoever takes it
// up, and only an item of a flow has somebody who reads it.
func RetryItem(ctx context.Context, a *app.App, it *lockkeeper.Item, note string, by lockkeeper.Actor) (*lockkeeper.Item, error) {
	q, err := a.Queue()
	if err != nil {
		return nil, err
	}
	name := pipeline.FlowOf(it)
	if name == "" {
		if note != "" {
			return nil, &lockkeeper.InputError{Field: "note", Value: note, Reason: "item " + it.ID + " belongs to no flow, so nobody would read it", Next: "leave it out"}
		}
		return q.Retry(ctx, it.ID, by)
	}
	d, err := Open(ctx, a, name, by)
	if err != nil {
		return nil, err
	}
	failed, err := a.Failures(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, f := range failed {
		if f.Item != it.ID {
			continue
		}
		v, err := d.Retry(ctx, []string{f.Name()}, note)
		if err == nil {
			err = v.Err()
		}
		if err != nil {
			return nil, err
		}
		return q.Find(ctx, it.ID)
	}
	return q.Retry(ctx, it.ID, by) // which says why it cannot be
}
