package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/agent"
	"lockkeeper/internal/dossier"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/pipeline"
	"lockkeeper/internal/process"
	"lockkeeper/internal/protect"
	"lockkeeper/internal/repo"
	"lockkeeper/internal/research"
	"lockkeeper/internal/sandbox"
	"lockkeeper/internal/sidecar"
	"lockkeeper/lock"
)

// FlowOptions say which flow is meant, and what a command was told about it.
type FlowOptions struct {
	Flow   string // empty: the one that is under way, else controllers
	Plan   string // of the tasks flow: the plan file, as it was typed
	Slots  int    // agents at once; 0: as configured
	USD    float64
	Tokens int64
	Branch string
	New    bool // a run that is not finished is left behind
	Look   bool // nothing is begun, and the tasks flow needs no plan: for somebody who looks
	Env    []string
	By     lockkeeper.Actor
	Tell   func(pipeline.News)
}

// callsDir is where calls of agents leave their traces, from the root.
const callsDir = dirName + "/calls"

// Book opens the documents of a flow.
func (a *App) Book(name string) (*dossier.Book, flow.Flow, *sidecar.Store, error) {
	f, err := flow.ByName(name)
	if err != nil {
		return nil, f, nil, err
	}
	c := a.Config.Run
	if name == "screens" && c.ScreensGate == "on" {
		f = f.Reviewed("batch_plan")
	}
	docs := sidecar.Open(a.below(a.DocumentsOf(name)))
	return dossier.Open(dossier.Options{Sidecar: docs, Screens: sidecar.Open(a.below(c.AnalysisDir)), Flow: f}), f, docs, nil
}

// DocumentsOf is where the documents of a flow are, from the root. The screens flow plans
// batches for the same controllers as the flow controllers, and has a folder of its own.
func (a *App) DocumentsOf(flow string) string {
	if flow == "screens" {
		return a.Config.Run.SidecarDir + "/+screens"
	}
	return a.Config.Run.SidecarDir
}

func (a *App) below(dir string) string { return filepath.Join(a.Root.Dir(), filepath.FromSlash(dir)) }

// Pipeline makes what runs a flow, with everything as it is configured.
func (a *App) Pipeline(ctx context.Context, o FlowOptions) (*pipeline.Pipeline, error) {
	book, f, docs, err := a.Book(o.Flow)
	if err != nil {
		return nil, err
	}
	if err := a.checkFolders(); err != nil {
		return nil, err
	}
	var opened *gate.Gate
	if !o.Look { // which makes what it needs, where it is new
		if opened, err = a.Gate(); err != nil {
			return nil, err
		}
	}
	c := a.Config
	layout := flow.Rails()
	p := pipeline.Options{
		Root: a.Root, Store: a.store, Gate: opened, Host: a.Host, Flow: f, Book: book, Documents: docs, Layout: layout,
		Discovery: flow.DiscoverOptions{Glob: c.Run.DiscoveryGlob, Excludes: c.Run.DiscoveryExcludes, TestPath: c.Run.TestPathResolver, Layout: layout},
		Calls:     a.below(callsDir), Workspaces: a.WorkspacesDir(), Sidecar: a.DocumentsOf(f.Name), Analysis: c.Run.AnalysisDir, Own: []string{c.Run.SidecarDir, c.Run.AnalysisDir}, Env: o.Env,
		Limits: pipeline.Limits{Agents: c.MaxClaudeConcurrency, API: c.MaxAPIConcurrency, Tests: c.MaxTestConcurrency, Fixes: c.MaxFixAttempts, CIFixes: c.MaxCIFixAttempts,
			Rechecks: 2, CheckTimeout: c.Run.CheckTimeout, LimitPause: 15 * time.Minute},
		Checks: pipeline.Checks{Test: c.Run.TestCommand, TestPath: c.Run.TestPathResolver, Suite: c.Run.SuiteCommand, CI: c.Run.CI},
		Budget: pipeline.Budget{USD: float64(c.Run.BudgetUSD), Tokens: int64(c.Run.BudgetTokens)},
		Land:   c.Run.Land, Review: c.Run.Review, LockReads: c.Run.LockReads == "on" || c.Run.LockReads == "auto" && f.Name == "screens",
		Linked: c.Agent.Linked, Branch: c.Run.Branch, Commit: c.Run.Commit == "on", API: c.Research.Method == "api",
		Actor: o.By, Tell: o.Tell,
		Permits: a.permitsTarget,
	}
	if o.Slots > 0 {
		p.Limits.Agents = o.Slots
	}
	if o.USD > 0 {
		p.Budget.USD = o.USD
	}
	if o.Tokens > 0 {
		p.Budget.Tokens = o.Tokens
	}
	if o.Branch != "" {
		p.Branch = o.Branch
	}
	if err := errors.Join(a.withInputs(&p, o), a.withAgents(ctx, &p), a.withRepo(ctx, &p)); err != nil {
		return nil, err
	}
	if c.Run.Locking == "on" {
		q, err := a.queueFor(p.Limits.Agents)
		if err != nil {
			return nil, err
		}
		p.Locks, p.Queue = a.Locks, q
	}
	if p.Run, err = a.runFor(ctx, o); err != nil {
		return nil, err
	}
	return pipeline.New(p)
}

// checkFolders refuses folders of documents that lie elsewhere, or in what is not theirs.
func (a *App) checkFolders() error {
	for key, dir := range map[string]string{"run.sidecar_dir": a.Config.Run.SidecarDir, "run.analysis_dir": a.Config.Run.AnalysisDir} {
		clean := filepath.Clean(filepath.FromSlash(dir))
		if _, reserved := protect.HasReserved(clean); reserved || !filepath.IsLocal(clean) || clean == "." {
			return &lockkeeper.InputError{Field: key, Value: dir, Reason: "not a directory of its own below the root", Next: "use a name such as .pipeline"}
		}
	}
	return nil
}

// withAgents says who does the work, and how they are kept in.
func (a *App) withAgents(ctx context.Context, p *pipeline.Options) error {
	c := a.Config.Agent
	p.Agents = pipeline.Agents{Usual: c.Name, Model: c.Model, Args: c.Args, Timeout: c.Timeout, StallAfter: c.StallAfter,
		Retry: agent.RetryPolicy{Attempts: c.Attempts, First: 2 * time.Second, Longest: 2 * time.Minute, Random: rand.Float64},
		Named: func(name string) (agent.Adapter, error) {
			if name == "" || name == c.Name {
				return agent.ByName(c.Name, c.Command...)
			}
			return agent.ByName(name)
		}}
	if _, err := p.Agents.Named(""); err != nil {
		return err
	}
	machine, err := sandbox.Probe(ctx)
	if err != nil && sandbox.Mode(c.Sandbox) == sandbox.Require {
		return err
	}
	if p.Sandbox, err = sandbox.Choose(sandbox.Mode(c.Sandbox), machine); err != nil {
		return err
	}
	agents := []string{c.Name}
	if p.Plan != nil {
		agents = append(agents, p.Plan.Agent)
		for _, t := range p.Plan.Tasks {
			agents = append(agents, t.Agent)
		}
	}
	if p.Reach, err = a.reach(ctx, agents, p.Env); err != nil {
		return err
	}
	override, err := os.OpenRoot(a.below(dirName + "/prompts"))
	if errors.Is(err, fs.ErrNotExist) {
		p.Prompts, err = flow.NewPrompts(nil)
		return err
	}
	if err != nil {
		return err
	}
	p.Prompts, err = flow.NewPrompts(override.FS())
	return errors.Join(err, override.Close())
}

// withInputs reads the manifest or the plan that a flow begins with.
func (a *App) withInputs(p *pipeline.Options, o FlowOptions) (err error) {
	switch p.Flow.Name {
	case "screens":
		p.Manifest, err = a.Manifest()
		return err
	case "tasks":
		if o.Plan, err = a.planFor(o); err != nil {
			return err
		}
		if o.Plan == "" && o.Look {
			return nil
		}
		if o.Plan == "" {
			return &lockkeeper.InputError{Field: "plan", Reason: "the tasks flow needs one", Next: "lockkeeper run --plan tasks.yaml"}
		}
		p.Plan, err = a.readPlan(o.Plan)
		return err
	}
	if dir, found, err := sidecar.FindLegacy(a.Root.Dir()); err != nil {
		return err
	} else if found && a.Config.Run.SidecarDir != filepath.Base(dir) {
		o.tell(fmt.Sprintf("there are documents of an earlier pipeline in %s, which are left alone; to go on with them set run.sidecar_dir: %s", dir, filepath.Base(dir)))
	}
	return nil
}

func (o FlowOptions) tell(text string) {
	if o.Tell != nil {
		o.Tell(pipeline.News{At: time.Now(), Kind: pipeline.NewsWarning, Text: text})
	}
}

// readPlan reads a plan file with the prompts that it names.
func (a *App) readPlan(name string) (*flow.TaskPlan, error) {
	path := a.PlanPath(name)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, &lockkeeper.InputError{Field: "plan", Value: name, Reason: reasonOf(err), Next: "name a file with tasks"}
	}
	plan, err := flow.ReadPlan(name, text)
	if err != nil {
		return nil, err
	}
	err = plan.ReadPrompts(func(file string) (string, error) {
		said, err := readBeside(path, file)
		if err != nil {
			return "", &lockkeeper.InputError{Field: "prompt_file", Value: file, Reason: reasonOf(err), Next: "name a file beside the plan"}
		}
		return string(said), nil
	})
	if err != nil {
		return nil, err
	}
	return plan, nil
}

// readBeside reads a file in the directory of another, or below it.
func readBeside(path, name string) (text []byte, err error) {
	dir, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	return dir.ReadFile(filepath.FromSlash(name))
}

// withRepo opens the repository, and the API of research.
func (a *App) withRepo(ctx context.Context, p *pipeline.Options) error {
	r, err := repo.Open(ctx, a.Root.Dir(), p.Env)
	var none *repo.NoneError
	_, missing := exec.LookPath("git")
	switch {
	case err == nil:
		p.Repo = r
	case !errors.As(err, &none) && missing == nil:
		return err
	case p.Commit || p.Branch != "":
		return &lockkeeper.InputError{Field: "commit", Value: "on", Reason: err.Error(), Next: "git init, or set run.commit: off"}
	}
	if key, _ := a.env("ANTHROPIC_API_KEY"); key != "" {
		base, _ := a.env("ANTHROPIC_BASE_URL")
		p.Research, err = research.New(research.Options{APIKey: key, BaseURL: base, Model: a.Config.Research.Model})
		return err
	}
	if p.API {
		return &lockkeeper.InputError{Field: "research.method", Value: "api", Reason: "ANTHROPIC_API_KEY is not set, so topics can only be answered by people", Next: "set it, or research.method: ask"}
	}
	return nil
}

// Conduct takes the lease of whoever conducts the flows of this space. Somebody else who
// has it is a *lockkeeper.BlockedError.
func (a *App) Conduct(ctx context.Context, holder string) (*lock.Grant, error) {
	self, err := process.Self() // whose death ends the lease at once
	if err != nil {
		return nil, err
	}
	g, err := a.Locks.TryAcquire(ctx, lockkeeper.Request{Holder: holder, Locks: conductorLock(), Process: &self})
	if err != nil {
		return nil, err
	}
	g.Keep()
	return g, nil
}

// Decided tells whoever conducts that a person has acted.
func (a *App) Decided(ctx context.Context, by lockkeeper.Actor, what string) error {
	return a.store.Update(ctx, func(tx lockkeeper.Tx) error {
		_, err := tx.Append(lockkeeper.Event{At: tx.Now().Wall, Kind: lockkeeper.EventDecided, Actor: by, Reason: what})
		return err
	})
}
