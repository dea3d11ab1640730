package run

import (
	"context"
	"os"
	"slices"
	"strings"

	"lockkeeper"
)

// discover finds the units of the flow, unless a survey found them already, and stores the plan
// of the task file.
func (p *Pipeline) discover(ctx context.Context) error {
	p.tell(News{Kind: NewsRun, Phase: "discover", Text: "discovering"})
	if p.units == nil {
		if err := p.Survey(ctx); err != nil {
			return err
		}
	}
	if p.faults != nil {
		p.tell(News{Kind: NewsWarning, Text: p.faults.Error()})
	}
	if p.opt.Tasks != nil {
		if err := p.takePlan(ctx); err != nil {
			return err
		}
	}
	p.tell(News{Kind: NewsRun, Phase: "discover", Text: counted(len(p.units), "unit") + ": " + strings.Join(p.units, ", ")})
	return nil
}

// Survey finds the units of the run and changes nothing. State, Outcome and Forecast need it.
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
	defer root.Close() // only read
	found, err := p.opt.Flow.Units(root.FS(), p.opt.Discovery, p.opt.Manifest)
	if err != nil && len(found.Names) == 0 {
		return err
	}
	p.units, p.found, p.groups, p.faults = found.Names, found.Found, found.Groups, err
	return nil
}

// Units lists the units of the run.
func (p *Pipeline) Units() []string { return slices.Clone(p.units) }
