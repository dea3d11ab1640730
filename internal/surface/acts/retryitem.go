package acts

import (
	"context"
	"slices"

	"lockkeeper"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/job"
	"lockkeeper/internal/project"
)

// RetryItem requeues a failed item. The note is for the agent, so only an item of a flow
// can have one.
func RetryItem(ctx context.Context, a *project.Project, it *lockkeeper.Item, note string, by lockkeeper.Actor) (*lockkeeper.Item, error) {
	q, err := job.Open(a)
	if err != nil {
		return nil, err
	}
	name := run.FlowOf(it)
	if name == "" {
		if note != "" {
			return nil, &lockkeeper.InputError{Field: "note", Value: note, Reason: "item " + it.ID + " belongs to no flow, so no agent reads it", Next: "leave it out"}
		}
		return q.Retry(ctx, it.ID, by)
	}
	d, err := Open(ctx, a, name, by)
	if err != nil {
		return nil, err
	}
	v, err := d.RetryItem(ctx, it, note)
	if err == nil {
		err = v.Err()
	}
	if err != nil {
		return nil, err
	}
	return q.Find(ctx, it.ID)
}

// RetryItem retries one failed item of the flow.
func (d *Decider) RetryItem(ctx context.Context, it *lockkeeper.Item, note string) (Verdict, error) {
	failed, err := conduct.Failures(ctx, d.App, d.Flow.Name)
	if err != nil {
		return Verdict{}, err
	}
	failed = slices.DeleteFunc(failed, func(f run.Failure) bool { return f.Item != it.ID })
	if len(failed) > 0 {
		return d.retry(ctx, failed, note)
	}
	q, err := job.Open(d.App)
	if err != nil {
		return Verdict{}, err
	}
	_, err = q.Retry(ctx, it.ID, d.By) // refuses an item that has not failed
	work, _ := run.WorkOf(it)
	return d.one(ctx, err, planOf(work.Unit), "retries "+it.Workflow+" in phase "+it.Phase)
}
