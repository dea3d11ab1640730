package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
)

// discover finds the units of the flow, unless a survey found them already, and stores the plan
// of the task file.
func (p *Pipeline) discover(ctx context.Context) error {
	p.tell(News{Kind: NewsRun, Phase: string(flow.Discovering), Text: "discovering"})
	if p.units == nil {
		if err := p.Survey(ctx); err != nil {
			return err
		}
	}
	if p.faults != nil {
		p.tell(News{Kind: NewsWarning, Text: p.faults.Error()})
	}
	var screens []flow.ManifestScreen
	for _, g := range p.groups {
		screens = append(screens, g.Screens...)
	}
	if err := p.opt.Progress.MoveDocuments(ctx, screens); err != nil {
		return err
	}
	if p.opt.Tasks != nil {
		if err := p.takePlan(ctx); err != nil {
			return err
		}
	}
	p.tell(News{Kind: NewsRun, Phase: string(flow.Discovering), Text: counted(len(p.units), "unit") + ": " + strings.Join(p.units, ", ")})
	return nil
}

// Survey finds the units of the run and changes nothing. State, Outcome and DryRun need it.
func (p *Pipeline) Survey(ctx context.Context) error {
	if err := p.find(); err != nil {
		return err
	}
	if len(p.units) == 0 {
		return &lockkeeper.InputError{Field: "discovery", Value: p.opt.Discovery.Glob, Reason: "it matches no controller", Next: "set run.discovery_glob in lockkeeper.yaml, or use a plan of tasks: lockkeeper run --plan FILE"}
	}
	if err := p.checkPaths(); err != nil {
		return err
	}
	return p.pick(ctx, p.opt.Only)
}

// checkPaths refuses a plan or a manifest with paths outside the root or paths that could never
// land.
func (p *Pipeline) checkPaths() error {
	read := func(path string) error {
		_, err := p.opt.Root.Resolve("", path, lockkeeper.Read)
		return err
	}
	switch {
	case p.opt.Tasks != nil:
		return p.opt.Tasks.CheckPaths(p.opt.Permits, read)
	case p.opt.Manifest != nil:
		return p.opt.Manifest.CheckReads(read)
	}
	return nil
}

// find finds the units and reads their descriptions from their sources.
func (p *Pipeline) find() (err error) {
	root, err := os.OpenRoot(p.opt.Root.Dir())
	if err != nil {
		return err
	}
	defer root.Close() // the root was only read
	found, err := p.opt.Flow.Units(root.FS(), p.opt.Discovery, p.opt.Manifest)
	if err != nil && len(found.Names) == 0 {
		return err
	}
	p.units, p.found, p.groups, p.faults = found.Names, found.Found, found.Groups, err
	return nil
}

func (p *Pipeline) Units() []string { return slices.Clone(p.units) }

// checkOrder refuses a part if an earlier part is neither complete nor named, because the run
// would do nothing.
func (p *Pipeline) checkOrder(ctx context.Context) error {
	for unit, parts := range p.parts {
		u, err := p.opt.Progress.Unit(ctx, unit)
		if err != nil {
			return err
		}
		open := p.upcoming(u)
		isOpen := func(id string) bool {
			return slices.ContainsFunc(open, func(b progress.Batch) bool { return b.ID == id })
		}
		for _, b := range open {
			for _, before := range b.After {
				if slices.Contains(parts, b.ID) && isOpen(before) && !slices.Contains(parts, before) {
					name := Work{Unit: unit, Part: before}.Name()
					return &lockkeeper.InputError{Field: "only", Value: Work{Unit: unit, Part: b.ID}.Name(), Reason: fmt.Sprintf("it comes after %s, which is not complete", name), Next: "add --only " + name}
				}
			}
		}
	}
	return nil
}

// Agents lists the agents that the run needs; "" is the default agent.
func (p *Pipeline) Agents() []string {
	if p.opt.Tasks == nil {
		return []string{""}
	}
	var names []string
	for _, b := range p.opt.Tasks.Batches("", time.Time{}).Batches {
		if p.wants(Work{Unit: p.opt.Flow.OneUnit, Part: b.ID}) && !slices.Contains(names, b.Agent) {
			names = append(names, b.Agent)
		}
	}
	return names
}

// wants reports whether the run includes a piece of work.
func (p *Pipeline) wants(d Work) bool {
	if p.opt.Wants != nil && !p.opt.Wants(d.Unit, d.Part) {
		return false
	}
	parts, limited := p.parts[d.Unit]
	return slices.Contains(p.units, d.Unit) && (!limited || slices.Contains(parts, d.Part))
}

// narrow reduces the state of a unit to the parts in the run, and reads the state of its
// screens, which have their own documents.
func (p *Pipeline) narrow(ctx context.Context, u *progress.Unit, s *UnitState) error {
	for _, screen := range p.groups[u.Name].Screens {
		at := slices.IndexFunc(s.Batches, func(b BatchState) bool { return u.Plan == nil && b.ID == screen.Name && b.Item == "" })
		if at < 0 {
			continue
		}
		state, err := p.opt.Progress.Screen(ctx, screen.Module, screen.Controller, screen.Name)
		if err != nil {
			return err
		}
		s.Batches[at].Status = state.Status
	}
	if _, limited := p.parts[u.Name]; limited {
		s.Batches = slices.DeleteFunc(s.Batches, func(b BatchState) bool { return !p.wants(Work{Unit: u.Name, Part: b.ID}) })
		if !slices.ContainsFunc(s.Batches, func(b BatchState) bool { return !flow.IsDone(b.Status) }) {
			s.Status, s.Pending = flow.Complete, ""
		}
	}
	s.fail()
	return nil
}

// Untested returns a warning about work that the run would land untested. It returns "" if all
// work is tested.
func (p *Pipeline) Untested() (string, error) {
	c := p.opt.Checks
	why, settings := "", "run.test_command"
	if c.Test != "" {
		why, settings = "their test files are missing, and ", "run.suite_command"
	}
	for _, phase := range p.opt.Flow.Checks() {
		if len(c.Commands[phase.Name]) > 0 {
			return "", nil
		}
		if phase.Commands != "" {
			settings += " or " + phase.Commands
		}
	}
	why += "no command is set in " + settings
	all, bare := len(p.units), slices.Clone(p.units) // bare are the units whose work has no tests of its own
	if p.opt.Tasks != nil {
		all, bare = len(p.opt.Tasks.Tasks), nil
		for _, t := range p.opt.Tasks.Tasks {
			if len(t.Tests) == 0 && len(p.opt.Tasks.Tests) == 0 {
				bare = append(bare, p.opt.Flow.OneUnit)
			}
		}
	}
	var problem error
	bare = slices.DeleteFunc(bare, func(unit string) bool {
		if c.Test == "" || !strings.Contains(c.Test, "{path}") || c.Suite != "" {
			return c.Test != ""
		}
		file := p.testOf(unit)
		if file == "" {
			return false
		}
		_, err := os.Stat(filepath.Join(p.opt.Root.Dir(), filepath.FromSlash(file)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			problem = errors.Join(problem, err)
		}
		return !errors.Is(err, fs.ErrNotExist)
	})
	switch len(bare) {
	case 0:
		return "", problem
	case all:
		return "nothing will be tested: " + why, problem
	}
	return fmt.Sprintf("%d of %d %ss will not be tested: %s", len(bare), all, p.opt.Flow.Counted, why), problem
}
