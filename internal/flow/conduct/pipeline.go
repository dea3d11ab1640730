package conduct

import (
	"cmp"
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
	"lockkeeper/internal/agent"
	"lockkeeper/internal/agent/sandbox"
	"lockkeeper/internal/agent/toolcache"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/documents"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/research"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/git"
	"lockkeeper/internal/machine/disk"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
	"lockkeeper/internal/project/protect"
	"lockkeeper/store"
)

// callsDir has the records of agent calls, relative to the root.
const callsDir = project.DirName + "/calls"

// baselineFile has the result of the tests before the first batch, relative to the root.
const baselineFile = project.DirName + "/baseline.json"

// limitPause is how long nothing starts after a rate limit without a reset time.
const limitPause = 15 * time.Minute

func OpenDocuments(a *project.Project, name string) (*progress.Tracker, flow.Flow, *documents.Store, error) {
	f, err := flow.ByName(name)
	if err != nil {
		return nil, f, nil, err
	}
	c := a.Config.Run
	if c.ScreensGate == "on" {
		f = f.Reviewed(f.OptionalReview)
	}
	docs := documents.Open(a.Below(DocumentsDir(a, f)))
	return progress.Open(progress.Options{Documents: docs, Screens: documents.Open(a.Below(c.AnalysisDir)), Flow: f}), f, docs, nil
}

// DocumentsDir returns the directory of a flow's documents, relative to the root.
func DocumentsDir(a *project.Project, f flow.Flow) string {
	if f.Folder == "" {
		return a.Config.Run.SidecarDir
	}
	return a.Config.Run.SidecarDir + "/" + f.Folder
}

// assemble collects the parts of a pipeline, except the gate, the queue and the id of the run.
func assemble(ctx context.Context, a *project.Project, o Options) (p run.Options, err error) {
	tracker, f, docs, err := OpenDocuments(a, o.Flow)
	if err != nil {
		return p, err
	}
	if err := checkFolders(a); err != nil {
		return p, err
	}
	c := a.Config
	layout := flow.Rails()
	p = run.Options{
		Root: a.Root, Store: a.Store, Host: a.Host, Flow: f, Progress: tracker, Documents: docs, Layout: layout,
		Discovery: flow.DiscoverOptions{Glob: c.Run.DiscoveryGlob, Excludes: c.Run.DiscoveryExcludes, TestPath: c.Run.TestPathResolver, Layout: layout},
		Calls:     a.Below(callsDir), Workspaces: a.WorkspacesDir(), Slots: a.SlotsDir(), Caches: toolcache.New(a.CachesDir(), toolcache.DefaultLimit), Folder: DocumentsDir(a, f), Analysis: c.Run.AnalysisDir, Own: []string{c.Run.SidecarDir, c.Run.AnalysisDir}, Env: o.Env,
		Limits: run.Limits{Agents: cmp.Or(o.Slots, c.MaxClaudeConcurrency), API: c.MaxAPIConcurrency, Tests: c.MaxTestConcurrency, Fixes: c.MaxFixAttempts, FixesIn: map[string]int{},
			Rechecks: 2, CheckTimeout: c.Run.CheckTimeout, LimitPause: limitPause},
		Checks:     run.Checks{Test: c.Run.TestCommand, TestPath: c.Run.TestPathResolver, Suite: c.Run.SuiteCommand, Commands: map[string][]string{}},
		Budget:     run.Budget{USD: cmp.Or(o.USD, float64(c.Run.BudgetUSD)), Tokens: cmp.Or(o.Tokens, int64(c.Run.BudgetTokens))},
		Unverified: c.Run.Verify == "off",
		Baseline:   c.Run.Baseline, BaselineFile: a.Below(baselineFile), AskBaseline: o.AskBaseline,
		Land: c.Run.Land, Review: c.Run.Review, LockReads: locksReads(c, f),
		Linked: c.Agent.Linked, Branch: cmp.Or(o.Branch, c.Run.Branch), Commit: c.Run.Commit == "on", Push: c.Run.Push == "on", API: c.Research.Method == "api",
		Only: o.Only, Wait: o.Wait, Retry: o.Retry, Wants: o.Wants, Actor: o.By, Tell: o.Tell,
		CheckCopy: a.CheckCopy, Permits: func(path string) error { return permitsTarget(a, path) },
	}
	if err := withChecks(c, &p); err != nil {
		return p, err
	}
	return p, errors.Join(withInputs(a, &p, o), withAgents(ctx, a, &p), withRepo(ctx, a, &p), withCrew(ctx, a, &p))
}

// checkFolders refuses directories of documents outside the root or inside reserved ones.
func checkFolders(a *project.Project) error {
	for key, dir := range map[string]string{"run.sidecar_dir": a.Config.Run.SidecarDir, "run.analysis_dir": a.Config.Run.AnalysisDir} {
		clean := filepath.Clean(filepath.FromSlash(dir))
		if _, reserved := protect.HasReserved(clean); reserved || !filepath.IsLocal(clean) || clean == "." {
			return &lockkeeper.InputError{Field: key, Value: dir, Reason: "not a separate directory below the root", Next: "use a name such as .pipeline"}
		}
	}
	return nil
}

// withChecks adds the commands and the limits of the check phases. A phase that names no limit has
// the limit of max_fix_attempts.
func withChecks(c *config.Config, p *run.Options) error {
	for _, phase := range p.Flow.Checks() {
		if phase.FixLimit != "" {
			most, ok := c.Get(phase.FixLimit).(int)
			if !ok {
				return noSetting(phase, phase.FixLimit, "a number")
			}
			p.Limits.FixesIn[phase.Name] = most
		}
		if phase.Commands != "" {
			commands, ok := c.Get(phase.Commands).([]string)
			if !ok {
				return noSetting(phase, phase.Commands, "a list of commands")
			}
			p.Checks.Commands[phase.Name] = commands
		}
	}
	return nil
}

func noSetting(phase flow.Phase, key, kind string) error {
	return &lockkeeper.InputError{Field: "phase", Value: phase.Name, Reason: fmt.Sprintf("%s is not a setting with %s", key, kind), Next: "name a setting from docs/config.md in the entry of the phase"}
}

func withAgents(ctx context.Context, a *project.Project, p *run.Options, more ...string) error {
	c := a.Config.Agent
	argv, err := agentCommand(a)
	if err != nil {
		return err
	}
	p.Agents = run.Agents{Default: c.Name, Model: c.Model, Args: c.Args, Timeout: c.Timeout, StallAfter: c.StallAfter,
		Retry: agent.RetryPolicy{Attempts: c.Attempts, First: 2 * time.Second, Longest: 2 * time.Minute, Random: rand.Float64},
		Named: func(name string) (agent.Adapter, error) {
			if name == "" || name == c.Name {
				return agent.ByName(c.Name, argv...)
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
	agents := append([]string{c.Name}, more...)
	if p.Tasks != nil {
		agents = append(agents, p.Tasks.Agent)
		for _, t := range p.Tasks.Tasks {
			agents = append(agents, t.Agent)
		}
	}
	if p.Reach, err = reach(ctx, a, agents, p.Env); err != nil {
		return err
	}
	override, err := os.OpenRoot(a.Below(project.DirName + "/prompts"))
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

// withInputs reads the manifest or the plan of a flow. Without a plan a flow can still be
// inspected.
func withInputs(a *project.Project, p *run.Options, o Options) (err error) {
	switch p.Flow.Source {
	case flow.FromManifest:
		p.Manifest, err = Manifest(a)
	case flow.FromPlan:
		var plan string
		if plan, err = planFor(a, o); plan != "" && err == nil {
			p.Tasks, err = readPlan(a, plan)
		}
	}
	return err
}

func readPlan(a *project.Project, name string) (*flow.TaskFile, error) {
	path := PlanPath(a, name)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, &lockkeeper.InputError{Field: "plan", Value: name, Reason: disk.Reason(err), Next: "name a file with tasks"}
	}
	plan, err := flow.ReadTasks(name, text)
	if err != nil {
		return nil, err
	}
	return plan, plan.ReadPrompts(func(file string) (string, error) {
		said, err := readBeside(path, file)
		if err != nil {
			return "", &lockkeeper.InputError{Field: "prompt_file", Value: file, Reason: disk.Reason(err), Next: "name a file beside the plan"}
		}
		return string(said), nil
	})
}

// readBeside reads a file in the directory of path, or below it.
func readBeside(path, name string) (text []byte, err error) {
	dir, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	return dir.ReadFile(filepath.FromSlash(name))
}

func withRepo(ctx context.Context, a *project.Project, p *run.Options) error {
	r, err := git.Open(ctx, a.Root.Dir(), p.Env)
	var none *git.NoneError
	_, missing := exec.LookPath("git")
	switch {
	case err == nil:
		p.Repo = r
	case !errors.As(err, &none) && missing == nil:
		return err
	case p.Commit || p.Branch != "":
		return &lockkeeper.InputError{Field: "commit", Value: "on", Reason: err.Error(), Next: "git init, or set run.commit: off"}
	}
	if key, _ := a.Env("ANTHROPIC_API_KEY"); key != "" {
		base, _ := a.Env("ANTHROPIC_BASE_URL")
		p.Research, err = research.New(research.Options{APIKey: key, BaseURL: base, Model: a.Config.Research.Model})
		return err
	}
	if p.API {
		return &lockkeeper.InputError{Field: "research.method", Value: "api", Reason: "ANTHROPIC_API_KEY is not set, so only people can answer topics", Next: "set it, or set research.method: ask"}
	}
	return nil
}

// RecordDecision records a person's act. The event also notifies the conductor.
func RecordDecision(ctx context.Context, a *project.Project, by lockkeeper.Actor, what string) error {
	return a.Store.Update(ctx, func(tx store.Tx) error {
		_, err := tx.Append(lockkeeper.Event{At: tx.Now().Wall, Kind: lockkeeper.EventDecided, Actor: by, Reason: what})
		return err
	})
}
