package conduct

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/agent/sandbox"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/documents"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/machine/disk"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
)

func Units(ctx context.Context, f flow.Flow, docs *documents.Store) ([]string, error) {
	names, _, err := docs.Units(ctx)
	return slices.DeleteFunc(names, func(name string) bool { return !f.Owns(name) }), err
}

// Failures lists the work of a flow that failed.
func Failures(ctx context.Context, a *project.Project, flowName string) ([]run.Failure, error) {
	docs, f, _, err := OpenDocuments(a, flowName)
	if err != nil {
		return nil, err
	}
	return run.Failures(ctx, a.Store, docs, f)
}

func Manifest(a *project.Project) (*flow.Manifest, error) {
	name := a.Config.Run.Screens
	text, err := os.ReadFile(a.Below(name))
	if err != nil {
		return nil, &lockkeeper.InputError{Field: "manifest", Value: name, Reason: disk.Reason(err), Next: "write it, or set run.screens in " + config.FileName}
	}
	return flow.ReadManifest(name, text)
}

// CheckTargets refuses write targets that could never land.
func CheckTargets(a *project.Project, paths []string) error {
	var errs []error
	for _, path := range paths {
		errs = append(errs, permitsTarget(a, path))
	}
	return errors.Join(errs...)
}

// patternLetters make a path a pattern unless a file has that name. They do not include brackets,
// because names of new files often contain them.
const patternLetters = "*?{"

// permitsTarget refuses a write target that could never land: a directory, a pattern, or a
// path that the gate does not permit.
func permitsTarget(a *project.Project, path string) error {
	target, err := a.Root.Resolve(a.Root.Dir(), path, lockkeeper.Write)
	switch {
	case err != nil:
		return err
	case target.Kind == lockkeeper.Dir:
		return &lockkeeper.OverLockError{Path: path, Policy: lockkeeper.DefaultPolicy}
	case strings.ContainsAny(path, patternLetters):
		if _, err := os.Lstat(a.Below(path)); err != nil {
			return &lockkeeper.InputError{Field: "path", Value: path, Reason: "a pattern; a write target must be one file", Next: "name each file"}
		}
	}
	return a.Permits(path)
}

// CanAskAPI reports whether there is a key for the Messages API.
func CanAskAPI(a *project.Project) bool {
	key, _ := a.Env("ANTHROPIC_API_KEY")
	return key != ""
}

// Journal opens the records of agent calls and checks.
func Journal(a *project.Project) *run.Journal { return run.OpenJournal(a.Below(callsDir)) }

// Discovered lists the units that a flow finds in the codebase, and their screens if the flow has
// screens. If some units are invalid, it returns the others together with an error.
func Discovered(a *project.Project, name string) (units []string, screens map[string][]flow.ManifestScreen, err error) {
	f, err := flow.ByName(name)
	if err != nil {
		return nil, nil, err
	}
	var manifest *flow.Manifest
	if f.Source == flow.FromManifest {
		if manifest, err = Manifest(a); err != nil {
			return nil, nil, err
		}
	}
	root, err := os.OpenRoot(a.Root.Dir())
	if err != nil {
		return nil, nil, err
	}
	c := a.Config.Run
	found, err := f.Units(root.FS(), flow.DiscoverOptions{Glob: c.DiscoveryGlob, Excludes: c.DiscoveryExcludes}, manifest)
	if manifest != nil {
		screens = map[string][]flow.ManifestScreen{}
		for _, g := range found.Groups {
			screens[g.Unit] = g.Screens
		}
	}
	return found.Names, screens, errors.Join(err, root.Close())
}

// SandboxLevel returns the configured mode of the sandbox and the level that this machine
// supports.
func SandboxLevel(ctx context.Context, a *project.Project) (mode sandbox.Mode, level sandbox.Level, err error) {
	mode = sandbox.Mode(a.Config.Agent.Sandbox)
	machine, err := sandbox.Probe(ctx)
	if err != nil {
		return mode, sandbox.Level{Missing: err.Error()}, err
	}
	level, err = sandbox.Choose(mode, machine)
	return mode, level, err
}

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
	argv, err := agentCommand(a)
	if err != nil {
		return err
	}
	for _, name := range names {
		program := cmp.Or(name, a.Config.Agent.Name)
		if program == a.Config.Agent.Name && len(argv) > 0 {
			program = argv[0]
		}
		path := program
		if strings.ContainsRune(program, filepath.Separator) && !filepath.IsAbs(program) {
			path = a.Below(program) // the program runs in a workspace, where a relative path would lead elsewhere
		}
		if _, err := exec.LookPath(path); err != nil {
			if why, ok := errors.AsType[*exec.Error](err); ok {
				err = why.Err
			}
			return &lockkeeper.InputError{Field: "agent", Value: program, Reason: "cannot be run: " + disk.Reason(err), Next: "install it, or set agent.command in " + config.FileName}
		}
	}
	return nil
}

// agentCommand returns the setting agent.command for use in a workspace, which has another path than the codebase: a
// file of the codebase has its path from the root. It refuses a path within a longer argument.
func agentCommand(a *project.Project) (argv []string, err error) {
	root := a.Root.Dir()
	for _, word := range a.Config.Agent.Command {
		if rest, inside := strings.CutPrefix(filepath.Clean(word), root+"/"); inside {
			word = "./" + rest
		} else if strings.Contains(word, root+"/") {
			return nil, &lockkeeper.InputError{Field: "agent.command", Value: word, Reason: "an agent has its own copy of the files in " + root,
				Next: "in " + config.FileName + ", write their paths from the root of the codebase: an agent starts there"}
		}
		argv = append(argv, word)
	}
	return argv, nil
}

// AgentTitle returns the name of the agent and its model for people.
func AgentTitle(a *project.Project) string {
	c := a.Config.Agent
	title := cmp.Or(strings.Join(c.Command, " "), c.Name)
	if c.Model != "" {
		title += ", model " + c.Model
	}
	return title
}

// LastOutput returns the file with the output of the last agent or check of an item of a flow, and its phase.
func LastOutput(j *run.Journal, it *lockkeeper.Item) (path, phase string, err error) {
	e, path, err := j.LastStep(it)
	if errors.Is(err, fs.ErrNotExist) {
		err = &lockkeeper.InputError{Field: "item", Value: it.ID, Reason: "no agent has worked on this item", Next: "lockkeeper why " + it.ID}
	}
	return path, e.Phase, err
}

// AgentCall returns a call of an agent for an item and its number, which people count from 1.
// Number 0 means the last call.
func AgentCall(a *project.Project, j *run.Journal, it *lockkeeper.Item, number int) (run.CallRecord, int, error) {
	name := run.FlowOf(it)
	if name == "" {
		return run.CallRecord{}, 0, &lockkeeper.InputError{Field: "item", Value: it.ID, Reason: "not an item of a flow", Next: "lockkeeper job output " + it.ID}
	}
	entries, err := j.All(name)
	calls := run.CallsOf(entries, it)
	switch {
	case number == 0 && len(calls) > 0:
		number = len(calls)
	case number > 0 && number <= len(calls):
	case err != nil: // the call may be the one whose record could not be read
		return run.CallRecord{}, 0, err
	case len(calls) == 0:
		return run.CallRecord{}, 0, &lockkeeper.InputError{Field: "item", Value: it.ID, Reason: "no agent has worked on this item", Next: "lockkeeper why " + it.ID}
	default:
		return run.CallRecord{}, 0, &lockkeeper.InputError{Field: "call", Value: fmt.Sprint(number), Reason: "unknown call of " + it.ID, Next: fmt.Sprintf("use 1 to %d", len(calls))}
	}
	return calls[number-1], number, nil
}
