package simulate

import (
	"bytes"
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

// A Took is how long a task takes.
type Took struct {
	Slot    time.Duration // in the slot of an agent
	Tests   time.Duration // in a slot for tests
	Outside time.Duration // otherwise
}

// Times has what is known about tasks from earlier runs. The zero value knows nothing.
type Times struct {
	Of        func(task string) (t Took, ran bool) // nil: nothing is known; a task that did not run takes as long as others
	LockReads bool                                 // tasks lock what they read
}

// FromTasks returns the plan of a file of tasks, in which each task is one item.
func FromTasks(name string, text []byte, times Times) (*Plan, error) {
	file, err := flow.ReadTasks(name, text)
	if err != nil {
		return nil, err
	}
	plan := &Plan{Sources: map[Source]int{}}
	for _, t := range file.Tasks {
		it := Item{Name: t.Name, Phase: "apply", Writes: t.Writes, After: t.After, Duration: t.Duration}
		if times.LockReads {
			it.Reads = t.Reads
		}
		source := Given
		if it.Duration == 0 {
			took, ran := Took{Slot: DefaultDuration}, false
			if times.Of != nil {
				took, ran = times.Of(t.Name)
			}
			it.Duration, it.Tests, it.Outside = took.Slot+took.Tests+took.Outside, took.Tests, took.Outside
			if source = Learned; !ran {
				source, plan.Assumed = Assumed, it.Duration
			}
		}
		plan.Sources[source]++
		plan.Items = append(plan.Items, it)
	}
	return plan, plan.check()
}
