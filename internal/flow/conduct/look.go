package conduct

import (
	"context"
	"errors"
	"os"

	"lockkeeper"
	"lockkeeper/internal/agent/sandbox"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/project"
	"lockkeeper/store"
)

// Journal reads what agents and checks left of what they did.
func Journal(a *project.Project) *run.Journal { return run.OpenJournal(a.Below(callsDir)) }

// Discovered lists the units that a flow finds in the codebase, with the screens of each
// in the screens flow. What cannot be worked on is named in the error, beside which the
// rest is returned.
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

// Confined is what agents are kept in with on this machine: the configured mode, and what
// that comes to.
func Confined(ctx context.Context, a *project.Project) (mode sandbox.Mode, level sandbox.Level, err error) {
	mode = sandbox.Mode(a.Config.Agent.Sandbox)
	machine, err := sandbox.Probe(ctx)
	if err != nil {
		return mode, sandbox.Level{Missing: err.Error()}, err
	}
	level, err = sandbox.Choose(mode, machine)
	return mode, level, err
}

// ConductorGrant is the grant of whoever conducts the flows of the space; nil: nobody does,
// as far as can be seen from here.
func ConductorGrant(a *project.Project, r store.Reader) (*store.Record, error) {
	found, _, err := r.Overlapping(store.Query{Locks: conductorLock(), Before: store.HeldOnly})
	for _, o := range found {
		rec := o.Record
		over := rec.Expires != 0 && rec.Expires <= r.Now().Lease
		if !over && (rec.Process == nil || a.Host.Life(*rec.Process) != lockkeeper.LifeDead) {
			return rec, err
		}
	}
	return nil, err
}
