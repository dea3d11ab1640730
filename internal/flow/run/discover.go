package run

import (
	"context"
	"os"
	"slices"
	"strings"

	"lockkeeper"
)

// discover finds the units of the flow, and takes up its plan.
func (p *Pipeline) discover(ctx context.Context, only []string) error {
	p.tell(News{Kind: NewsRun, Phase: "discover", Text: "discovering"})
	if err := p.Survey(ctx, only); err != nil {
		return err
	}
	if p.opt.Tasks != nil {
		if err := p.takePlan(ctx); err != nil {
			return err
		}
	}
	p.tell(News{Kind: NewsRun, Phase: "discover", Text: counted(len(p.units), "unit") + ": " + strings.Join(p.units, ", ")})
	return nil
}

// Survey finds the units of the flow, or only some of them, or of some only a batch, a
// screen or a task, and changes nothing. After it the others can be asked who look: State,
// Outcome and Forecast.
func (p *Pipeline) Survey(ctx context.Context, only []string) error {
	if err := p.find(); err != nil {
		return err
	}
	if len(p.units) == 0 {
		return &lockkeeper.InputError{Field: "discovery", Value: p.opt.Discovery.Glob, Reason: "it matches no controller", Next: "set run.discovery_glob in lockkeeper.yaml, or use a plan of tasks: lockkeeper run --plan FILE"}
	}
	if err := p.checkPaths(); err != nil {
		return err
	}
	return p.pick(ctx, only)
}

// checkPaths refuses a plan or a manifest with paths that could never land, or that lead
// out of the tree.
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

// find lists the units.
func (p *Pipeline) find() (err error) {
	root, err := os.OpenRoot(p.opt.Root.Dir())
	if err != nil {
		return err
	}
	defer root.Close() // only read from
	found, err := p.opt.Flow.Units(root.FS(), p.opt.Discovery, p.opt.Manifest)
	if err != nil {
		if len(found.Names) == 0 {
			return err
		}
		p.tell(News{Kind: NewsWarning, Text: err.Error()})
	}
	p.units, p.found, p.groups = found.Names, found.Found, found.Groups
	return nil
}

// Units are those that were found.
func (p *Pipeline) Units() []string { return slices.Clone(p.units) }
