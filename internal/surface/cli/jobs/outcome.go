package jobs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

// outcome is the result of a worker.
type outcome struct {
	Done   int      `json:"done"`
	Failed int      `json:"failed"` // since it started, on any worker
	Queued int      `json:"queued"`
	Left   []string `json:"queued_items"` // ids; only with --until-empty
	Lost   []string `json:"failed_items"` // ids

	left, lost []*lockkeeper.Item
}

// namedAtEnd is how many items the end of a worker names.
const namedAtEnd = 10

// end shows the result, and returns the exit code of the worker.
func (b *board) end(ctx context.Context, untilEmpty bool) error {
	close(b.quit)
	b.loop.Wait()
	b.live = false
	if b.p.HandlesEscapes(b.p.Out) && !b.p.JSON {
		fmt.Fprint(b.p.Out, term.ClearLine)
	}
	out, err := b.reckon(ctx, untilEmpty)
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.queued, b.waits = out.Queued, ""
	b.say(event{Event: "ended", outcome: out}, b.summary())
	b.mu.Unlock()
	if !untilEmpty || out.Failed+out.Queued == 0 {
		return nil
	}
	if b.p.JSON {
		return &command.ExitError{Code: command.ExitFailed}
	}
	return &command.ExitError{Code: command.ExitFailed, Err: b.unfinished(ctx, out)}
}

// reckon counts completed, failed and queued items.
func (b *board) reckon(ctx context.Context, untilEmpty bool) (*outcome, error) {
	elsewhere, err := b.changedElsewhere(ctx)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, it := range elsewhere {
		b.tell(it)
	}
	now, err := b.q.Items(ctx, slices.Collect(maps.Keys(b.failed)))
	if err != nil {
		return nil, err
	}
	out := &outcome{Done: b.done, Left: []string{}, Lost: []string{}}
	clear(b.failed)
	for _, it := range now {
		if it.Status == lockkeeper.ItemError { // not retried since
			b.failed[it.ID] = it
			out.lost = append(out.lost, it)
		}
	}
	slices.SortFunc(out.lost, func(a, b *lockkeeper.Item) int { return int(int64(a.Seq) - int64(b.Seq)) })
	out.Failed = len(out.lost)
	if out.Queued, err = b.q.Depth(ctx); err != nil {
		return nil, err
	}
	if untilEmpty && out.Queued > 0 {
		out.left, err = b.q.Oldest(ctx, lockkeeper.ItemQueued, out.Queued)
	}
	for _, it := range out.lost {
		out.Lost = append(out.Lost, it.ID)
	}
	for _, it := range out.left {
		out.Left = append(out.Left, it.ID)
	}
	return out, err
}

// unfinished returns the error of --until-empty if items failed or are still queued.
func (b *board) unfinished(ctx context.Context, out *outcome) error {
	var parts []string
	next := ""
	if out.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%s failed: %s", term.Counted(out.Failed, "item"), namesOf(out.lost)))
		next = "lockkeeper why " + out.Lost[0]
	}
	if out.Queued > 0 {
		parts = append(parts, fmt.Sprintf("%s %s still queued: %s", term.Counted(out.Queued, "item"), term.Plural(out.Queued, "is", "are"), namesOf(out.left)))
	}
	if next == "" && len(out.left) > 0 {
		next = "lockkeeper why " + out.Left[0]
		failed, err := b.q.FailedBefore(ctx, out.left[0])
		if err != nil {
			return err
		}
		if failed != nil {
			next = retryOrCancel(failed.ID, out.Left[0])
		}
	}
	return lockkeeper.WithNext(errors.New(strings.Join(parts, "; ")), next)
}

// namesOf returns the names of items, up to namedAtEnd.
func namesOf(items []*lockkeeper.Item) string {
	var names []string
	for _, it := range items[:min(len(items), namedAtEnd)] {
		names = append(names, fmt.Sprintf("%s (%s)", it.ID, Title(it)))
	}
	text := strings.Join(names, ", ")
	if more := len(items) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
