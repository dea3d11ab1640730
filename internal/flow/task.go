package flow

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"lockkeeper"
)

// A TaskFile is a plan file with tasks.
type TaskFile struct {
	Agent string   // for tasks without an agent
	Tests []string // test commands, for tasks without tests
	Tasks []Task

	file string // its name in messages
}

// A Task is one task of a plan file.
type Task struct {
	Name       string
	Prompt     string // for the agent
	PromptFile string // read by ReadPrompts instead of Prompt
	Reads      []string
	Writes     []string
	After      []string
	Tests      []string
	Agent      string

	places taskPlaces
}

// taskPlaces has the positions of the parts of a task in the file.
type taskPlaces struct {
	promptFile    spot
	reads, writes []spot
}

// CheckPaths refuses paths that write or read refuses.
func (p *TaskFile) CheckPaths(write, read func(path string) error) error {
	var problems []error
	check := func(t Task, paths []string, places []spot, permits func(path string) error) {
		for i, path := range paths {
			if err := permits(path); err != nil {
				problems = append(problems, places[i].wrong(p.file, t.Name, err))
			}
		}
	}
	for _, t := range p.Tasks {
		check(t, t.Writes, t.places.writes, write)
		check(t, t.Reads, t.places.reads, read)
	}
	return errors.Join(problems...)
}

// ReadPrompts reads the prompts that are in separate files.
func (p *TaskFile) ReadPrompts(read func(file string) (string, error)) error {
	var problems []error
	for i := range p.Tasks {
		t := &p.Tasks[i]
		if t.PromptFile == "" {
			continue
		}
		var err error
		if t.Prompt, err = read(t.PromptFile); err != nil {
			problems = append(problems, t.places.promptFile.wrong(p.file, t.Name, err))
		}
	}
	return errors.Join(problems...)
}

// Batches returns the plan of the tasks, each after those in its After. The author of the file
// approved it by writing it.
func (p *TaskFile) Batches(approvedBy string, at time.Time) Plan {
	batches := make([]Batch, len(p.Tasks))
	for i, t := range p.Tasks {
		batches[i] = Batch{ID: t.Name, Title: t.Name, Items: []string{}, WriteTargets: Targets(t.Writes), Reads: Targets(t.Reads),
			After: t.After, Prompt: t.Prompt, Tests: t.Tests, Agent: t.Agent}
		if len(t.Tests) == 0 {
			batches[i].Tests = slices.Clone(p.Tests)
		}
		if t.Agent == "" {
			batches[i].Agent = p.Agent
		}
	}
	if ordered, err := inOrder(batches); err == nil { // ReadTasks refuses circles
		batches = ordered
	}
	return Plan{Batches: batches, Approved: &Approval{By: approvedBy, At: at}}
}

var taskName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(idForm) })

// check checks the tasks of a file after it was parsed.
func (f *planText) check(file string) error {
	var problems []error
	report := func(at spot, member, reason, next string) {
		problems = append(problems, at.wrong(file, member, lockkeeper.WithNext(errors.New(reason), next)))
	}
	if len(f.Tasks) == 0 {
		report(spot{}, "tasks", "missing", "add a task with name, prompt and writes")
	}
	lines := map[string]int{}
	for _, t := range f.Tasks {
		name := t.Name.value
		switch first, twice := lines[name]; {
		case name == "":
			report(t.spot(), "task", "the name is missing", "add a name")
			continue
		case !taskName().MatchString(name):
			report(t.Name.spot, name, "not a name: letters, digits, dots, dashes and underscores, at most 100", "")
		case twice:
			report(t.Name.spot, name, fmt.Sprintf("the task in line %d has this name", first), "give each its own")
		}
		lines[name] = t.Name.line
		switch {
		case t.Prompt.value == "" && t.PromptFile.value == "":
			report(t.Name.spot, name, "neither prompt nor prompt_file", "describe the change")
		case t.Prompt.value != "" && t.PromptFile.value != "":
			report(t.PromptFile.spot, name, "both prompt and prompt_file", "keep one of them")
		}
		if len(t.Writes) == 0 {
			report(t.Name.spot, name, "no writes: it could change nothing", "name the files that it will change")
		}
		for _, w := range t.Writes {
			if _, err := writable(w.value); err != nil {
				problems = append(problems, w.spot.wrong(file, name+"/writes", err))
			}
		}
		for _, r := range t.Reads {
			if _, err := readable(r.value); err != nil {
				problems = append(problems, r.spot.wrong(file, name+"/reads", err))
			}
		}
	}
	for _, t := range f.Tasks {
		for _, after := range t.After {
			if _, known := lines[after.value]; !known {
				report(after.spot, t.Name.value+"/after", fmt.Sprintf("unknown task %q", after.value), "name one of "+strings.Join(sortedKeys(lines), ", "))
			}
		}
	}
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	return f.circles(file)
}

// circles finds tasks that wait for each other.
func (f *planText) circles(file string) error {
	_, err := inOrder(f.plan(file).Batches("", time.Time{}).Batches)
	var round *circleError
	if !errors.As(err, &round) {
		return err
	}
	i := slices.IndexFunc(f.Tasks, func(t taskText) bool { return slices.Contains(round.ids, t.Name.value) })
	return f.Tasks[i].After[0].spot.wrong(file, f.Tasks[i].Name.value+"/after", err)
}
