package flows

import (
	"cmp"
	"fmt"
	"slices"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/surface/cli/jobs"
	"lockkeeper/internal/surface/cli/term"
)

// tasks returns one line for each task: its state, for how long, and what it waits for. Tasks at work come first.
func (v *runView) tasks(room int) (lines []string) {
	var list []run.BatchState
	for _, u := range v.out.State.Units {
		list = append(list, u.Batches...)
	}
	slices.SortStableFunc(list, func(a, b run.BatchState) int { return cmp.Compare(v.taskOrder(a), v.taskOrder(b)) })
	left := 0
	if len(list) > room {
		left = len(list) - room + 1
		list = list[:room-1]
	}
	wide := 0
	for _, b := range list {
		wide = max(wide, len([]rune(b.ID)))
	}
	wide = min(wide, jobs.NameWidth)
	for _, b := range list {
		lines = append(lines, fmt.Sprintf("  %s %-*s  %s", []string{"▶", "✗", "○", "■"}[v.taskOrder(b)], wide, term.Shorten(term.Clean(b.ID), wide), v.taskState(b)))
	}
	if left > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", left))
	}
	return lines
}

// These are the groups of tasks, in the order of the picture.
const (
	taskAtWork = iota
	taskFailed
	taskWaits
	taskDone
)

func (v *runView) taskOrder(b run.BatchState) int {
	switch {
	case b.Status == flow.Failed:
		return taskFailed
	case flow.IsDone(b.Status):
		return taskDone
	case b.Status == flow.Queued || len(b.Blocked) > 0 || b.Item == "" || v.idle[b.Item] != "":
		return taskWaits
	}
	return taskAtWork
}

// blocker names a task that another one waits for.
func (v *runView) blocker(id string) string {
	for _, u := range v.out.State.Units {
		for _, b := range u.Batches {
			if b.ID == id && b.Status == flow.Failed {
				return term.Clean(id) + ", which failed"
			}
		}
	}
	return term.Clean(id)
}

// taskState describes where a task is, and what it waits for.
func (v *runView) taskState(b run.BatchState) string {
	switch {
	case b.Status == flow.Failed:
		return "failed: " + term.Clean(firstLine(b.Error))
	case flow.IsDone(b.Status):
		return v.words(b.Status, "", b.Since, "")
	case len(b.Blocked) > 0:
		return "waits for " + term.Join(b.Blocked, v.blocker)
	case b.Item == "":
		return "waits for its turn"
	case v.idle[b.Item] != "":
		pool := v.idle[b.Item]
		return fmt.Sprintf("waits for a slot of %s, %d/%d in use", pool, v.taken[pool], v.limits[pool])
	case b.Status != flow.Queued:
		return v.words(b.Status, b.Pending, b.Since, b.Note)
	}
	for _, e := range v.waits {
		if e.Item.ID == b.Item {
			return "waits for " + jobs.WaitOf(v.p.Program, e)
		}
	}
	return v.words(b.Status, b.Pending, b.Since, b.Note)
}

// countUnits counts tasks in a flow of tasks, and units otherwise. All tasks are one unit,
// which is complete only at the end.
func countUnits(out *run.Outcome, of flow.Flow) (complete, failed, all int, what string) {
	if of.OneUnit == "" {
		return out.Complete, out.Failed, len(out.State.Units), of.Counted
	}
	for _, u := range out.State.Units {
		all += len(u.Batches)
		for _, b := range u.Batches {
			switch b.Status {
			case flow.Complete, flow.NoChange:
				complete++
			case flow.Failed:
				failed++
			}
		}
	}
	return complete, failed, all, of.Counted
}
