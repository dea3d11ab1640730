package conduct

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/machine/disk"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
)

// FlowName returns the flow to run: the named one, the flow of a plan, the flow of the unfinished
// run, or else the default.
func FlowName(a *project.Project, named, plan string) (string, error) {
	tasks := flow.ForPlan().Name
	switch {
	case plan != "" && named != "" && named != tasks:
		return "", &lockkeeper.InputError{Field: "flow", Value: named, Reason: "a plan belongs to the flow " + tasks, Next: "leave --flow or --plan out"}
	case plan != "":
		return tasks, nil
	case named != "":
		f, err := flow.ByName(named)
		return f.Name, err
	}
	last, err := CurrentRun(a)
	if err != nil || last == nil || !last.Ended.IsZero() {
		return flow.Default().Name, err
	}
	return last.Flow, nil
}

// LastFlow returns the flow to show: the named one, or that of the last run.
func LastFlow(a *project.Project, named string) (string, error) {
	last, err := CurrentRun(a)
	if named != "" || err != nil || last == nil {
		return FlowName(a, named, "")
	}
	return last.Flow, nil
}

// CheckAgent refuses to run if the program of an agent is missing. The name "" is the default
// agent.
func CheckAgent(a *project.Project, names ...string) error {
	for _, name := range names {
		if err := checkProgram(a, name); err != nil {
			return err
		}
	}
	return nil
}

func checkProgram(a *project.Project, name string) error {
	program := cmp.Or(name, a.Config.Agent.Name)
	if program == a.Config.Agent.Name && len(a.Config.Agent.Command) > 0 {
		program = a.Config.Agent.Command[0]
	}
	path := program
	if strings.ContainsRune(program, filepath.Separator) && !filepath.IsAbs(program) {
		path = a.Below(program) // it runs in a workspace
	}
	_, err := exec.LookPath(path)
	if err == nil {
		return nil
	}
	var why *exec.Error
	if errors.As(err, &why) {
		err = why.Err
	}
	return &lockkeeper.InputError{Field: "agent", Value: program, Reason: "cannot be run: " + disk.Reason(err), Next: "install it, or set agent.command in " + config.FileName}
}

// AgentTitle returns the name of the agent and its model for people.
func AgentTitle(a *project.Project) string {
	c := a.Config.Agent
	title := strings.Join(c.Command, " ")
	title = cmp.Or(title, c.Name)
	if c.Model != "" {
		title += ", model " + c.Model
	}
	return title
}

// AgentLog opens the log of the last agent that worked for an item. It returns nil if the item
// belongs to no flow.
func AgentLog(a *project.Project, it *lockkeeper.Item) (*os.File, error) {
	if run.FlowOf(it) == "" {
		return nil, nil
	}
	f, err := run.LastLog(a.Below(callsDir), it.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &lockkeeper.InputError{Field: "item", Value: it.ID, Reason: "no agent has worked for it", Next: "lockkeeper why " + it.ID}
	}
	return f, err
}
