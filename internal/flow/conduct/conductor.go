package conduct

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"lockkeeper"
	"lockkeeper/internal/agent/program"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/documents"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/job"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/lock"
)

// A Conductor conducts one run of a flow, for a command or for a server. It finds the parts of
// the pipeline once: the machine, the agents, the repository, the prompts.
type Conductor struct {
	Flow flow.Flow

	project *project.Project
	opt     Options
	parts   run.Options
	seen    *run.Pipeline // made by Survey, for the next Start; nil: none
}

// New prepares a run and starts nothing.
func New(ctx context.Context, a *project.Project, o Options) (*Conductor, error) {
	policy, err := o.Policy()
	if err != nil {
		return nil, err
	}
	named := o.Flow != ""
	if o.Flow, err = FlowName(a, o.Flow, o.Plan); err != nil {
		return nil, err
	}
	if o.Plan == "" && !named && o.Flow == flow.Default().Name && needsPlan(a) {
		return nil, &lockkeeper.InputError{Field: "plan", Reason: "a run of this codebase needs a plan of tasks, because run.discovery_glob names no controllers", Next: firstPlan(a)}
	}
	parts, err := assemble(ctx, a, o)
	if err != nil {
		return nil, err
	}
	parts.Auto = policy
	return &Conductor{Flow: parts.Flow, project: a, opt: o, parts: parts}, nil
}

// Survey finds the units of the run, with the pipeline that Start conducts. It starts nothing. The
// run may have been begun by another process.
func (c *Conductor) Survey(ctx context.Context) (*run.Pipeline, error) {
	if err := withInputs(c.project, &c.parts, c.opt); err != nil {
		return nil, err
	}
	opt := c.parts
	var err error
	if !c.opt.New {
		if opt.Run, err = unfinishedRun(c.project, c.Flow.Name); err != nil {
			return nil, err
		}
	}
	if c.project.Config.Run.Locking == "on" {
		opt.Locks = c.project.Locks
		if opt.Queue, err = job.Scheduler(c.project, opt.Limits.Agents); err != nil {
			return nil, err
		}
	}
	if c.seen, err = run.New(opt); err != nil {
		return nil, err
	}
	return c.seen, c.seen.Survey(ctx)
}

// TryTests runs the test commands of the surveyed run once, on the unchanged tree, in the sandbox.
// It changes nothing. While another process conducts a run, no command runs. TryTests returns nil
// if no test command is configured. It calls began before the commands start.
func (c *Conductor) TryTests(ctx context.Context, began func(commands []string)) (*run.Trial, error) {
	busy, err := Holder(ctx, c.project)
	if err != nil {
		return nil, err
	}
	if busy != "" {
		busy = "a run by " + busy + " is in progress and uses the test slots"
	}
	return c.seen.TryTests(ctx, busy, began)
}

// TryTests does the same for the configured test command, within a limit of its own, if no run is
// surveyed.
func TryTests(ctx context.Context, a *project.Project, env []string, limit time.Duration, began func(commands []string)) (*run.Trial, error) {
	if a.Config.Run.TestCommand == "" && a.Config.Run.SuiteCommand == "" {
		return nil, nil
	}
	c, err := New(ctx, a, Options{Flow: flow.Default().Name, Env: env})
	if err != nil {
		return nil, err
	}
	c.parts.Limits.CheckTimeout = min(c.parts.Limits.CheckTimeout, limit)
	if c.seen, err = run.New(c.parts); err != nil {
		return nil, err
	}
	return c.TryTests(ctx, began)
}

// Check refuses a run that could not work, before it starts.
func (c *Conductor) Check(ctx context.Context, seen *run.Pipeline) error {
	a, cfg := c.project, c.project.Config
	if err := CheckAgent(a, seen.Agents()...); err != nil {
		return err
	}
	for _, name := range seen.Agents() {
		if err := checkBudget(cmp.Or(name, cfg.Agent.Name), max(c.opt.USD, float64(cfg.Run.BudgetUSD)), max(c.opt.Tokens, int64(cfg.Run.BudgetTokens))); err != nil {
			return err
		}
	}
	if c.Flow.Source != flow.FromPlan || c.opt.Plan != "" {
		return nil
	}
	if holder, err := Holder(ctx, a); holder != "" || err != nil {
		return err
	}
	if last, err := CurrentRun(a); err != nil || last != nil && last.Plan != "" {
		return err
	}
	return &lockkeeper.InputError{Field: "plan", Reason: "the flow " + c.Flow.Name + " needs one, also to resume", Next: "lockkeeper run --plan tasks.yaml"}
}

// checkBudget refuses a limit that an agent's output does not let the run enforce.
func checkBudget(agent string, usd float64, tokens int64) error {
	named, _ := program.ByName(agent)
	if usd > 0 && !named.LimitsCost {
		next := "limit the tokens with --tokens instead"
		if !named.CountsTokens {
			next = "leave the budget out, and limit the agent itself"
		}
		return &lockkeeper.InputError{Field: "budget", Value: fmt.Sprint(usd), Reason: "the agent " + agent + " does not report its cost, so money cannot be limited", Next: next}
	}
	if tokens > 0 && !named.CountsTokens {
		return &lockkeeper.InputError{Field: "tokens", Value: fmt.Sprint(tokens), Reason: "the agent " + agent + " does not report its tokens, so they cannot be limited", Next: "leave the limit out, and limit the agent itself"}
	}
	return nil
}

// Legacy returns a warning if the run ignores documents of an earlier pipeline. It returns "" if
// there are none.
func (c *Conductor) Legacy() (string, error) {
	if c.Flow.Source != flow.Codebase {
		return "", nil
	}
	dir, found, err := documents.FindLegacy(c.project.Root.Dir())
	if err != nil || !found || c.project.Config.Run.SidecarDir == filepath.Base(dir) {
		return "", err
	}
	return fmt.Sprintf("documents of an earlier pipeline in %s are ignored; to continue with them, set run.sidecar_dir: %s", dir, filepath.Base(dir)), nil
}

// Start takes the conductor's lock and begins the run, or resumes it. If another process
// conducts, Start returns a *lockkeeper.BlockedError.
func (c *Conductor) Start(ctx context.Context) (*ActiveRun, error) {
	holder, err := process.Holder()
	if err != nil {
		return nil, err
	}
	lease := c.opt.Taken.take()
	if lease == nil {
		if lease, err = Lease(ctx, c.project, holder); err != nil {
			return nil, err
		}
	}
	if err := c.project.CheckTree(ctx); err != nil { // agents read the whole tree
		return nil, errors.Join(err, lease.Release(context.WithoutCancel(ctx)))
	}
	p, err := c.begin(ctx)
	if err != nil {
		return nil, errors.Join(err, lease.Release(context.WithoutCancel(ctx)))
	}
	c.opt.New, c.seen = false, nil
	self, err := process.Self()
	if err == nil {
		err = changeRun(ctx, c.project, func(r *Run) { r.Conductor, r.Failure = &self, "" })
	}
	if err != nil {
		return nil, errors.Join(err, lease.Release(context.WithoutCancel(ctx)))
	}
	r := &ActiveRun{Pipeline: p, c: c, lease: lease}
	if r.shared, err = share(ctx, c, lease.ID); err == nil {
		err = r.foretell(ctx, c.project)
	}
	if err != nil {
		return nil, errors.Join(err, r.Close(ctx))
	}
	return r, nil
}

func (c *Conductor) begin(ctx context.Context) (*run.Pipeline, error) {
	if c.seen == nil {
		if _, err := c.Survey(ctx); err != nil {
			return nil, err
		}
	}
	if c.Flow.Source == flow.FromPlan && c.parts.Tasks == nil {
		return nil, &lockkeeper.InputError{Field: "plan", Reason: "the flow " + c.Flow.Name + " needs one", Next: "lockkeeper run --plan tasks.yaml"}
	}
	warning, err := c.Legacy()
	if err != nil {
		return nil, err
	}
	if warning != "" {
		c.tell(run.News{At: time.Now(), Kind: run.NewsWarning, Text: warning})
	}
	gate, err := c.project.Gate() // Gate creates the directories that the gate needs
	if err != nil {
		return nil, err
	}
	id, err := runFor(ctx, c.project, c.opt)
	if err != nil {
		return nil, err
	}
	return c.seen, c.seen.Lead(id, gate)
}

func (c *Conductor) tell(n run.News) {
	if c.opt.Tell != nil {
		c.opt.Tell(n)
	}
}

// An ActiveRun is a run that this process conducts. It holds the conductor's lock.
type ActiveRun struct {
	*run.Pipeline
	c      *Conductor
	lease  *lock.Grant
	shared *sharedRun // nil: no other machine works on the codebase
}

// Run conducts until every remaining step needs a person, ctx ends, or the lease is lost, and
// returns the outcome. When stop is closed, nothing new starts. A complete run is marked as
// ended.
func (r *ActiveRun) Run(ctx context.Context, stop <-chan struct{}) (out *run.Outcome, err error) {
	defer func() {
		if err != nil && !isEnding(ctx, err) {
			err = errors.Join(err, changeRun(context.WithoutCancel(ctx), r.c.project, func(run *Run) { run.Failure = err.Error() }))
		}
	}()
	return r.conduct(ctx, stop)
}

func (r *ActiveRun) conduct(ctx context.Context, stop <-chan struct{}) (*run.Outcome, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(r.lease.Context(), func() { end(r.lost()) })()
	ended := r.shared.publish(ctx, r.Pipeline, end)
	began := time.Now()
	settled := r.keepCurrent(ctx)
	ran, err := r.Pipeline.Run(ctx, stop)
	settled()
	ended()
	if lost := r.lost(); lost != nil {
		return nil, errors.Join(lost, err)
	}
	if err != nil && !isEnding(ctx, err) {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx)
	out, err := r.Outcome(ctx) // runs after all work has ended
	if err != nil {
		return nil, err
	}
	if err := r.c.opt.Taken.commit(ctx, r.c.project, r.c.parts.Repo); err != nil {
		r.c.tell(run.News{At: time.Now(), Kind: run.NewsWarning, Text: "landings of the lost machine are not committed: " + err.Error()})
	}
	out.Stopped, out.Unpushed = ran == nil || ran.Stopped, r.PushLast(ctx)
	r.shared.ended(out)
	if err := r.shared.publishDocuments(ctx, r.Pipeline); err != nil {
		r.shared.warn(ctx, "another machine could not continue the run: "+err.Error())
	}
	if err := r.judge(ctx, began, out); err != nil {
		return nil, err
	}
	whole := len(r.c.opt.Only) == 0 || r.c.opt.Wants != nil
	if units := len(r.Units()); whole && units > 0 && out.Complete+out.Excluded == units {
		err = EndRun(ctx, r.c.project)
	}
	return out, err
}

// isEnding reports whether an error only means that ctx ended.
func isEnding(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
}

func (r *ActiveRun) lost() error {
	if r.lease.Context().Err() == nil {
		return nil
	}
	return fmt.Errorf("the conductor lost its lease: %w", context.Cause(r.lease.Context()))
}

// Close records that the process no longer conducts, and releases the conductor's lock.
func (r *ActiveRun) Close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	return errors.Join(r.shared.close(ctx, r.lost() == nil), changeRun(ctx, r.c.project, func(r *Run) { r.Conductor = nil }), r.lease.Release(ctx))
}

// Options select a run and its extent. Flags and forms set them, and the conductor reads them.
type Options struct {
	Flow   string   `json:"flow,omitempty"`        // empty: see FlowName
	Plan   string   `json:"plan,omitempty"`        // the plan file of a flow that needs one
	Only   []string `json:"only,omitempty"`        // units, or parts of them; empty: all
	Auto   string   `json:"auto_decide,omitempty"` // a policy that decides in place of people
	Slots  int      `json:"slots,omitempty"`       // concurrent agents; 0: as configured
	USD    float64  `json:"budget_usd,omitempty"`
	Tokens int64    `json:"budget_tokens,omitempty"`
	Branch string   `json:"branch,omitempty"`
	Retry  bool     `json:"retry,omitempty"` // retry failed work
	New    bool     `json:"new,omitempty"`   // abandon an unfinished run
	Wait   bool     `json:"wait,omitempty"`  // do not end while decisions are open

	By    lockkeeper.Actor             `json:"-"`
	Env   []string                     `json:"-"` // the environment of agents and commands
	Tell  func(run.News)               `json:"-"` // as run.Options.Tell
	Wants func(unit, part string) bool `json:"-"` // as run.Options.Wants

	Taken *Takeover `json:"-"` // the run was begun by another machine; nil: it was not

	AskBaseline func(context.Context, *run.Baseline) (bool, error) `json:"-"` // as run.Options.AskBaseline
}

// mostSlots is far above the number of agents that one machine can run.
const mostSlots = 1_000

// Policy checks the options and parses Auto. It returns nil if people decide.
func (o Options) Policy() (*progress.Policy, error) {
	invalid := func(field string, value any, next string) error {
		return &lockkeeper.InputError{Field: field, Value: fmt.Sprint(value), Reason: "out of range", Next: next}
	}
	switch {
	case o.Slots < 0 || o.Slots > mostSlots:
		return nil, invalid("slots", o.Slots, fmt.Sprintf("use 1 to %d", mostSlots))
	case !(o.USD >= 0 && o.USD <= 1e6):
		return nil, invalid("budget_usd", o.USD, "give dollars, such as 20, or leave it out")
	case o.Tokens < 0:
		return nil, invalid("budget_tokens", o.Tokens, "give a number such as 5000000, or leave it out")
	case o.Auto == "":
		return nil, nil
	}
	policy, err := progress.ParsePolicy(o.Auto)
	return &policy, err
}
