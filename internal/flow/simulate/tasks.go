package simulate

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"lockkeeper/internal/flow"
)

// A Source says where the duration of a task comes from.
type Source string

// The sources of durations.
const (
	Given   Source = "given"   // the plan has it
	Learned Source = "learned" // the task ran before
	Assumed Source = "assumed" // the median of the tasks that ran before, or DefaultDuration
)

// DefaultDuration is the assumed duration of a task if nothing is known.
const DefaultDuration = 5 * time.Minute

// IsTasks reports whether a plan is the file of a flow of tasks.
func IsTasks(text []byte) bool {
	return bytes.HasPrefix(text, []byte("tasks:")) || bytes.Contains(text, []byte("\ntasks:"))
}

// FromTasks returns the plan of a file of tasks, in which each task is one item. learned has the durations of tasks
// that ran before, by name.
func FromTasks(name string, text []byte, learned map[string]time.Duration) (*Plan, error) {
	file, err := flow.ReadTasks(name, text)
	if err != nil {
		return nil, err
	}
	known := DefaultDuration
	if all := slices.Sorted(maps.Values(learned)); len(all) > 0 {
		known = all[len(all)/2]
	}
	plan := &Plan{Sources: map[Source]int{}, Assumed: known}
	for _, t := range file.Tasks {
		it := Item{Name: t.Name, Phase: "apply", Reads: t.Reads, Writes: t.Writes, After: t.After, Duration: t.Duration}
		source := Given
		if it.Duration == 0 {
			if it.Duration, source = learned[t.Name], Learned; it.Duration == 0 {
				it.Duration, source = known, Assumed
			}
		}
		plan.Sources[source]++
		plan.Items = append(plan.Items, it)
	}
	return plan, plan.check()
}
