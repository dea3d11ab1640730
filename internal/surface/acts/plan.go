package acts

import (
	"context"
	"strings"

	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
)

// MoveItem moves an item to another batch. Like every edit of a plan it is possible until
// the first batch starts, and withdraws an approval.
func (d *Decider) MoveItem(ctx context.Context, unit, item, to string, seen Seen) (Verdict, error) {
	return d.edit(ctx, unit, seen, "has item "+item+" in batch "+to, func(b *progress.Tracker) ([]string, error) {
		return b.MoveItem(ctx, unit, item, to, d.By.Name)
	})
}

// Split moves items of a batch to a new one after it.
func (d *Decider) Split(ctx context.Context, unit, batch string, items []string, seen Seen) (Verdict, error) {
	return d.edit(ctx, unit, seen, "has "+strings.Join(items, ", ")+" of batch "+batch+" in a batch of their own", func(b *progress.Tracker) ([]string, error) {
		return b.SplitBatch(ctx, unit, batch, items, d.By.Name)
	})
}

// Merge moves all items of batch from into batch into.
func (d *Decider) Merge(ctx context.Context, unit, into, from string, seen Seen) (Verdict, error) {
	return d.edit(ctx, unit, seen, "has all of batch "+from+" in batch "+into, func(b *progress.Tracker) ([]string, error) {
		return b.MergeBatches(ctx, unit, into, from, d.By.Name)
	})
}

// SetTargets replaces the files that a batch may change.
func (d *Decider) SetTargets(ctx context.Context, unit, batch string, paths []string, seen Seen) (Verdict, error) {
	return d.edit(ctx, unit, seen, "has batch "+batch+" change "+strings.Join(paths, ", "), func(b *progress.Tracker) ([]string, error) {
		if err := conduct.CheckTargets(d.App, paths); err != nil {
			return nil, err
		}
		return b.SetTargets(ctx, unit, batch, paths, d.By.Name)
	})
}

// edit changes the plan of a unit.
func (d *Decider) edit(ctx context.Context, unit string, seen Seen, did string, change func(*progress.Tracker) (warnings []string, err error)) (Verdict, error) {
	plan := planOf(unit)
	var v Verdict
	if _, err := d.Unit(ctx, unit); err != nil {
		return v, err
	}
	warnings, err := change(d.Tracker.IfUnchanged(seen.of(plan)))
	v.Warnings = warnings
	v.take(err, plan, did)
	return d.finish(ctx, v)
}
