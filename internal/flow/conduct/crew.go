package conduct

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/agent/program"
	"lockkeeper/internal/agent/toolcache"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/fleet"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/git/parcel"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/tree"
)

// withCrew lets a pipeline share its calls with other machines. Without a remote of git that all of
// them reach, calls run here.
func withCrew(ctx context.Context, a *project.Project, p *run.Options) error {
	if Fleet(a) == nil || p.Repo == nil || a.Config.Run.Locking != "on" {
		return nil
	}
	c, err := newCrew(ctx, a, p.Env, p.Limits)
	if err != nil || c.Remote == "" {
		return err
	}
	c.Self.Conducts = true
	p.Crew = c
	return nil
}

func newCrew(ctx context.Context, a *project.Project, env []string, limits run.Limits) (*run.Crew, error) {
	repo, err := parcel.Open(ctx, a.Root.Dir(), filepath.Join(joinDir(a), "index"), env)
	if err != nil {
		return nil, err
	}
	self, err := process.Self()
	if err != nil {
		return nil, err
	}
	c := &run.Crew{Fleet: Fleet(a), Parcels: repo, Space: a.Space, Needs: map[string][]string{},
		Self: fleet.Machine{ID: "m" + rand.Text()[:16], Name: self.Host, Root: a.Root.Dir(), Began: time.Now().UTC(), Agents: limits.Agents, Tests: limits.Tests, Labels: a.Config.Labels}}
	for _, need := range a.Config.Run.Needs {
		phase, label, _ := strings.Cut(need, "=")
		c.Needs[phase] = append(c.Needs[phase], label)
	}
	c.Remote, err = repo.Remote(ctx, a.Config.Run.Remote)
	return c, err
}

// joinDir returns the directory, outside of every root, for calls of other machines that this clone carries out.
func joinDir(a *project.Project) string {
	sum := sha256.Sum256([]byte(a.Root.Dir()))
	return filepath.Join(a.StateDir, "joined", fmt.Sprintf("%s-%x", a.Space[:8], sum[:4]))
}

// A Join takes calls of the run that another machine conducts.
type Join struct {
	*run.Joiner
	Self fleet.Machine

	root *tree.Root
}

// NewJoin prepares this machine for calls of other machines.
func NewJoin(ctx context.Context, a *project.Project, o Options, tell func(string)) (_ *Join, err error) {
	if Fleet(a) == nil {
		return nil, &lockkeeper.InputError{Field: "join", Reason: "the locks of this codebase are on one machine (deployment " + a.Config.Deployment + ")", Next: "share them through PostgreSQL: docs/tasks/machines.md"}
	}
	if err := CheckAgent(a, ""); err != nil {
		return nil, err
	}
	c := a.Config
	if err := checkBudget(c.Agent.Name, o.USD, o.Tokens); err != nil {
		return nil, err
	}
	limits := run.Limits{Agents: cmp.Or(o.Slots, c.MaxClaudeConcurrency), API: c.MaxAPIConcurrency, Tests: c.MaxTestConcurrency, CheckTimeout: c.Run.CheckTimeout, LimitPause: limitPause}
	crew, err := newCrew(ctx, a, o.Env, limits)
	if err != nil {
		return nil, err
	}
	if crew.Remote == "" {
		return nil, &lockkeeper.InputError{Field: "run.remote", Reason: "this clone has no git remote through which calls could come", Next: "git remote add origin URL, or set run.remote"}
	}
	programs := []string{c.Agent.Name}
	for _, known := range program.All() {
		if known.Name != c.Agent.Name && CheckAgent(a, known.Name) == nil {
			programs = append(programs, known.Name)
		}
	}
	crew.Self.Programs = programs
	dir := joinDir(a)
	checkout, err := crew.Parcels.NewCheckout(ctx, filepath.Join(dir, "tree"))
	if err != nil {
		return nil, err
	}
	root, err := tree.Open(filepath.Join(dir, "tree"))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, root.Close())
		}
	}()
	calls := filepath.Join(dir, "calls", crew.Self.ID) // no earlier call counts
	p := run.Options{Root: root, Host: a.Host, Flow: flow.Default(), Calls: calls, Workspaces: filepath.Join(dir, "workspaces"), Slots: a.SlotsDir(),
		Caches: toolcache.New(a.CachesDir(), toolcache.DefaultLimit), Own: []string{c.Run.SidecarDir, c.Run.AnalysisDir}, Env: o.Env, Limits: limits, Budget: run.Budget{USD: o.USD, Tokens: o.Tokens}, Crew: crew, Actor: o.By, Tell: o.Tell}
	if err := withAgents(ctx, a, &p, programs[1:]...); err != nil {
		return nil, err
	}
	joiner, err := run.NewJoiner(p, checkout, tell, func(ctx context.Context, r *fleet.Run) (bool, error) { return conducts(ctx, a, r) })
	if err != nil {
		return nil, err
	}
	return &Join{Joiner: joiner, Self: crew.Self, root: root}, nil
}

// Close removes what this machine needed for calls.
func (j *Join) Close(ctx context.Context) error {
	err := j.root.Close()
	calls := filepath.Join(filepath.Dir(j.root.Dir()), "calls", j.Self.ID)
	if gone := os.RemoveAll(calls); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}
