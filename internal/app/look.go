package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/pipeline"
	"lockkeeper/internal/sandbox"
)

// View reads a consistent state of the space.
func (a *App) View(ctx context.Context, look func(lockkeeper.Reader) error) error {
	return a.store.View(ctx, look)
}

// Journal reads what agents and checks left of what they did.
func (a *App) Journal() *pipeline.Journal { return pipeline.OpenJournal(a.below(callsDir)) }

// Discovered lists the units that a flow finds in the codebase, with the screens of each
// in the screens flow. What cannot be worked on is named in the error, beside which the
// rest is returned.
func (a *App) Discovered(name string) (units []string, screens map[string][]flow.ScreenEntry, err error) {
	switch name {
	case flow.Tasks().Name:
		return []string{pipeline.TasksUnit}, nil, nil
	case flow.Screens().Name:
		manifest, err := a.Manifest()
		if err != nil {
			return nil, nil, err
		}
		screens = map[string][]flow.ScreenEntry{}
		for _, g := range manifest.Controllers() {
			units = append(units, g.Unit)
			screens[g.Unit] = g.Screens
		}
		return units, screens, nil
	}
	root, err := os.OpenRoot(a.Root.Dir())
	if err != nil {
		return nil, nil, err
	}
	c := a.Config.Run
	found, err := flow.Discover(root.FS(), flow.DiscoverOptions{Glob: c.DiscoveryGlob, Excludes: c.DiscoveryExcludes})
	for _, f := range found {
		units = append(units, f.Name)
	}
	return units, nil, errors.Join(err, root.Close())
}

// Confined is what agents are kept in with on this machine: the configured mode, and what
// that comes to.
func (a *App) Confined(ctx context.Context) (mode sandbox.Mode, level sandbox.Level, err error) {
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
func (a *App) ConductorGrant(r lockkeeper.Reader) (*lockkeeper.Record, error) {
	found, _, err := r.Overlapping(lockkeeper.Query{Locks: conductorLock(), Before: lockkeeper.HeldOnly})
	for _, o := range found {
		rec := o.Record
		over := rec.Expires != 0 && rec.Expires <= r.Now().Lease
		if !over && (rec.Process == nil || a.Host.Life(*rec.Process) != lockkeeper.LifeDead) {
			return rec, err
		}
	}
	return nil, err
}

// IsOwn reports whether a path is one that only Lockkeeper itself locks.
func IsOwn(path string) bool { return path == dirName || strings.HasPrefix(path, dirName+"/") }

// HasHook reports whether git asks before a commit whether its changes are covered.
func HasHook(ctx context.Context, git *Git) (bool, error) {
	top, err := git.top(ctx)
	if err != nil {
		return false, err
	}
	dir, err := git.hooks(ctx, top)
	if err != nil {
		return false, err
	}
	text, err := readHook(filepath.Join(dir, "pre-commit"))
	return strings.Contains(text, hookMark) || strings.Contains(text, "gate changes --hook"), err
}

// Version is the version of this program.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "of unknown version"
	}
	v := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && v == "(devel)" {
			v += " " + s.Value
		}
	}
	return v + ", " + info.GoVersion
}
