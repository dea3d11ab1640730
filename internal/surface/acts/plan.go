package acts

import (
	"context"
	"strings"

	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
)

// MoveItem moves an item to another batch. Like every edit of a plan it is possible until the
// first batch starts, and withdraws an approval.
type MoveItem struct {
	Item string `json:"item"`
	To   string `json:"to"` // id of the batch
	Seen Seen   `json:"seen,omitempty"`
}

func (a MoveItem) Do(ctx context.Context, d *Decider, unit string) (Verdict, error) {
	return d.edit(ctx, unit, a.Seen, "has item "+a.Item+" in batch "+a.To, func(b *progress.Tracker) ([]string, error) {
		return b.MoveItem(ctx, unit, a.Item, a.To, d.By.Name)
	})
}

// Split moves items of a batch to a new one after it.
type Split struct {
	Batch string   `json:"batch"`
	Items []string `json:"items"`
	Seen  Seen     `json:"seen,omitempty"`
}

func (a Split) Do(ctx context.Context, d *Decider, unit string) (Verdict, error) {
	return d.edit(ctx, unit, a.Seen, "has "+strings.Join(a.Items, ", ")+" of batch "+a.Batch+" in a batch of their own", func(b *progress.Tracker) ([]string, error) {
		return b.SplitBatch(ctx, unit, a.Batch, a.Items, d.By.Name)
	})
}

// Merge moves all items of batch From into batch Into.
type Merge struct {
	Into string `json:"into"`
	From string `json:"from"`
	Seen Seen   `json:"seen,omitempty"`
}

func (a Merge) Do(ctx context.Context, d *Decider, unit string) (Verdict, error) {
	return d.edit(ctx, unit, a.Seen, "has all of batch "+a.From+" in batch "+a.Into, func(b *progress.Tracker) ([]string, error) {
		return b.MergeBatches(ctx, unit, a.Into, a.From, d.By.Name)
	})
}

// SetTargets replaces the files that a batch may change.
type SetTargets struct {
	Batch string   `json:"batch"`
	Paths []string `json:"paths"`
	Seen  Seen     `json:"seen,omitempty"`
}

func (a SetTargets) Do(ctx context.Context, d *Decider, unit string) (Verdict, error) {
	return d.edit(ctx, unit, a.Seen, "has batch "+a.Batch+" change "+strings.Join(a.Paths, ", "), func(b *progress.Tracker) ([]string, error) {
		if err := conduct.CheckTargets(d.App, a.Paths); err != nil {
			return nil, err
		}
		return b.SetTargets(ctx, unit, a.Batch, a.Paths, d.By.Name)
	})
}

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
