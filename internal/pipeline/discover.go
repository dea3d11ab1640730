package pipeline

import (
	"context"
	"os"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow"
)

// discover finds the units of the flow, and takes up its plan.
func (p *Pipeline) discover(ctx context.Context, only []string) error {
	p.tell(News{Kind: NewsRun, Phase: "discover", Text: "discovering"})
	if err := p.Survey(ctx, only); err != nil {
		return err
	}
	if p.opt.Flow.Name == "tasks" {
		if err := p.takePlan(ctx); err != nil {
			return err
		}
	}
	p.tell(News{Kind: NewsRun, Phase: "discover", Text: counted(len(p.units), "unit") + ": " + strings.Join(p.units, ", ")})
	return nil
}

// Survey finds the units of the flow, or only some of them, or of some only a batch, a
// screen or a task, and changes nothing. After it the others can be asked who look: Look,
// Glance and Forecast.
func (p *Pipeline) Survey(ctx context.Context, only []string) error {
	if err := p.find(); err != nil {
		return err
	}
	if len(p.units) == 0 {
		return &lockkeeper.InputError{Field: "discovery", Value: p.opt.Discovery.Glob, Reason: "no controller was found", Next: "set run.discovery_glob in lockkeeper.yaml, or name tasks: lockkeeper run --plan FILE"}
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
	case p.opt.Plan != nil:
		return p.opt.Plan.CheckPaths(p.opt.Permits, read)
	case p.opt.Manifest != nil:
		return p.opt.Manifest.CheckReads(read)
	}
	return nil
}

// find lists the units.
func (p *Pipeline) find() (err error) {
	p.units = nil
	switch p.opt.Flow.Name {
	case "screens":
		for _, g := range p.opt.Manifest.Controllers() {
			p.groups[g.Unit] = g
			p.units = append(p.units, g.Unit)
		}
		return nil
	case "tasks":
		p.units = []string{TasksUnit}
		return nil
	}
	root, err := os.OpenRoot(p.opt.Root.Dir())
	if err != nil {
		return err
	}
	defer root.Close() // only read from
	found, err := flow.Discover(root.FS(), p.opt.Discovery)
	if len(found) == 0 && err != nil {
		return err
	}
	if err != nil {
		p.tell(News{Kind: NewsWarning, Text: err.Error()})
	}
	for _, f := range found {
		p.found[f.Name] = f
		p.units = append(p.units, f.Name)
	}
	return nil
}

// Units are those that were found.
func (p *Pipeline) Units() []string { return slices.Clone(p.units) }
