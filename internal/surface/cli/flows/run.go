package flows

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/encoding/shellword"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/job"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/jobs"
	"lockkeeper/internal/surface/cli/server"
	"lockkeeper/internal/surface/cli/term"
)

type runOptions struct {
	conduct.Options
	dry, noUI  bool
	plain      bool     // lines instead of the screen
	yes        bool     // continue without asking
	untried    bool     // a dry run does not run the tests
	join, stay bool     // take calls of the run of another machine; also of the next one
	callsOnly  bool     // never conduct
	conducting []string // given flags that only a run that starts applies
}

func (p *program) runCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run a flow over the codebase: analyze, change, test and land",
		Long: `Run a flow over the codebase. The flow controllers takes each controller from an
analysis to tested changes. The flow screens does the same from a manifest of screens,
and the flow tasks does what the prompts of a plan file say. Agents work in private
workspaces. Their changes are tested there and land through the gate, under locks on the
declared files. Unless run.discovery_glob names controllers, a run needs a plan file:

  tests: [make test]
  tasks:
    - name: rate-limit
      prompt: Limit sign-ins to five a minute.
      writes: [app/controllers/sessions_controller.rb]

It stops when every remaining step needs your decision: see lockkeeper decide. Results
are kept, so the same command resumes where the last one stopped, also after a crash.
Only one process runs a flow at a time. A second run attaches to it and shows its
progress.

Before the first batch it runs the test command once on the unchanged tree. If that fails,
it asks in a terminal whether to continue, and otherwise continues (run.baseline). A batch whose
tests fail in the same way is not fixed.

With --dry-run it runs the test command once, on the unchanged tree and in the sandbox,
and says whether it passes here. That calls no agent and changes nothing. It runs the
tests of the plan, else run.test_command or, if that tests one file, run.suite_command.

With --join, on another clone of a codebase whose locks are in PostgreSQL, it takes calls
of the run that another machine conducts: its agents and tests also run here, in
workspaces of exactly the tree that the run sends through git. It ends with the run. If
that machine disappears, one of those that joined continues the run: its clone is brought
to the upstream of its branch, and changes land there.

On a terminal it shows a full screen: see lockkeeper top. The run continues if you close it
with q. With --plain, and in a pipe, it prints lines.

Ctrl-C finishes running agents and starts no new ones. Press it again, a second or more
later, to stop them; their work returns to the queue.

The exit code is 0 if everything is complete or needs only your decisions. It is 1 if
something failed or could not be pushed, or the process that ran the flow died, and 7 if
the budget is spent.
With --json each line is an object; the last one is the result.`,
		Example: `  lockkeeper run
  lockkeeper run --dry-run
  lockkeeper run --flow screens --slots 4 --budget 20
  lockkeeper run --plan tasks.yaml
  lockkeeper run --plan tasks.yaml --only rate-limit
  lockkeeper run --only blog/posts --auto-decide "impact>=medium,topics=reject"
  lockkeeper run --retry
  lockkeeper run --plain
  lockkeeper run --join --slots 4`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.parse(cmd); err != nil {
				return err
			}
			return p.WithQueue(cmd.Context(), p.Settings(), func(a *project.Project, q *job.Queue) error {
				return (&flowRun{program: p, a: a, q: q, o: &o}).run(cmd.Context())
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Flow, "flow", "", "the `flow`: "+strings.Join(flow.Names(), ", ")+" (default: that of --plan, else the current one, else "+flow.Default().Name+" where run.discovery_glob is set)")
	f.StringVar(&o.Plan, "plan", "", "the `file` with the tasks of the flow tasks")
	f.StringArrayVar(&o.Only, "only", nil, "only this `unit`, such as blog/posts, or this batch or screen of one, such as blog/posts/b1, or this task, or those that match a pattern such as 'admin/*'; repeatable")
	f.StringVar(&o.Auto, "auto-decide", "", "decide by this `policy` instead of a person: all, none, or conditions such as impact>=medium,topics=reject")
	f.IntVar(&o.Slots, "slots", 0, "how many `agents` run at once (default: max_claude_concurrency)")
	f.Var((*term.Dollars)(&o.USD), "budget", "`dollars` that the run may spend in total (default: run.budget_usd), or with --join this machine")
	f.Int64Var(&o.Tokens, "tokens", 0, "tokens that the run may spend in total (default: run.budget_tokens), or with --join this machine")
	f.StringVar(&o.Branch, "branch", "", "the `branch` to work on (default: run.branch, else the current one)")
	f.BoolVar(&o.Retry, "retry", false, "retry failed work")
	f.BoolVar(&o.Wait, "wait", false, "wait for decisions instead of stopping")
	f.BoolVar(&o.New, "new", false, "start a new run, with its own budget")
	f.BoolVar(&o.noUI, "no-ui", false, "do not serve the dashboard")
	f.BoolVar(&o.plain, "plain", false, "print lines on a terminal, too, instead of a full screen")
	f.BoolVar(&o.dry, "dry-run", false, "show what the run would do and whether the tests pass now, and change nothing")
	f.BoolVar(&o.yes, "yes", false, "continue without asking if the tests fail on the unchanged tree")
	f.BoolVar(&o.join, "join", false, "take calls of the run that another machine conducts, with the agents of this one")
	f.BoolVar(&o.stay, "stay", false, "with --join: wait for the next run when there is none")
	f.BoolVar(&o.callsOnly, "calls-only", false, "with --join: take calls, but do not take the part of a conductor that disappears")
	f.BoolVar(&o.untried, "no-tests", false, "with --dry-run: do not run the tests on the unchanged tree")
	return cmd
}

func (o *runOptions) parse(cmd *cobra.Command) error {
	wrong := func(field string, value any, reason, next string) error {
		return &lockkeeper.InputError{Field: field, Value: fmt.Sprint(value), Reason: reason, Next: next}
	}
	given := cmd.Flags().Changed
	switch {
	case given("slots") && (o.Slots < 1 || o.Slots > jobs.MostSlots):
		return wrong("slots", o.Slots, fmt.Sprintf("out of range, must be 1 to %d", jobs.MostSlots), "give the number of agents to run at once")
	case given("tokens") && o.Tokens < 1:
		return wrong("tokens", o.Tokens, "out of range", "give a number such as 5000000, or omit the flag")
	case o.untried && !o.dry:
		return wrong("no-tests", o.untried, "only a dry run can leave out the tests", "add --dry-run, or omit the flag")
	case o.stay && !o.join:
		return wrong("stay", o.stay, "only a machine that joins can wait for a run", "add --join, or omit the flag")
	case o.callsOnly && !o.join:
		return wrong("calls-only", o.callsOnly, "only a machine that joins takes calls", "add --join, or omit the flag")
	case o.join:
		for _, name := range []string{"flow", "plan", "only", "auto-decide", "branch", "retry", "wait", "new", "dry-run"} {
			if given(name) {
				return wrong(name, "", "the machine that conducts the run decides this", "omit the flag, or --join")
			}
		}
	case given("plan") && o.Plan == "":
		return wrong("plan", o.Plan, "empty", "name a file with tasks")
	}
	for _, name := range []string{"auto-decide", "slots", "budget", "tokens", "branch", "retry", "wait"} {
		if given(name) {
			o.conducting = append(o.conducting, "--"+name)
		}
	}
	if !given("auto-decide") {
		return nil
	}
	_, err := progress.ParsePolicy(o.Auto)
	return err
}

type flowRun struct {
	*program
	a     *project.Project
	q     *job.Queue
	o     *runOptions
	c     *conduct.Conductor
	flow  flow.Flow
	board *runBoard
}

func (r *flowRun) run(ctx context.Context) (err error) {
	o := r.o.Options
	o.Env, o.By = r.Env, r.Actor()
	r.board = newRunBoard(r)
	if r.o.join {
		return r.takePart(ctx, o)
	}
	if o.Tell = r.board.hear; r.o.dry {
		o.Tell = func(n run.News) { r.Note("%s", term.Clean(n.Text)) } // the answer is what the run would do, alone
	}
	if _, inside := r.Agent(); r.Attended() && !inside && !r.JSON && !r.o.yes {
		o.AskBaseline = r.askBaseline
	}
	elsewhere, err := conduct.Elsewhere(ctx, r.a)
	if err != nil {
		return err
	}
	if elsewhere != nil {
		return r.watchElsewhere(ctx, elsewhere)
	}
	if r.o.Taken == nil {
		if _, err := r.takeOver(ctx); err != nil {
			return err
		}
	}
	if r.o.Taken != nil {
		defer func() { err = errors.Join(err, r.o.Taken.Close(ctx)) }()
		given := o
		o = r.o.Options
		o.Env, o.By, o.Tell, o.AskBaseline = given.Env, given.By, given.Tell, given.AskBaseline
	}
	if r.c, err = conduct.New(ctx, r.a, o); err != nil {
		return err
	}
	r.flow = r.c.Flow
	seen, err := r.c.Survey(ctx) // Survey only reads, so a refusal changes nothing
	if err != nil {
		return err
	}
	if r.o.dry {
		return r.dryRun(ctx, seen)
	}
	if r.o.Auto != "" {
		if err := r.NoAgent("deciding by a policy"); err != nil {
			return err
		}
	}
	if err := r.c.Check(ctx, seen); err != nil {
		return err
	}
	active, err := r.c.Start(ctx)
	if taken, ok := errors.AsType[*lockkeeper.BlockedError](err); ok {
		if conductor, ok := conduct.ConductorIn(taken.Conflicts); ok {
			return r.join(ctx, conductor)
		}
	}
	if err != nil {
		return err
	}
	return errors.Join(r.withUI(ctx, func() error {
		return session.Open(r.a).Watched(ctx, r.watcher(), func(ctx context.Context) error { return r.conduct(ctx, active) })
	}), active.Close(ctx))
}

// watcher adds to the news of the run which files of its items other programs change.
func (r *flowRun) watcher() session.Watcher {
	tell := func(item, text string) {
		r.board.hear(run.News{At: r.Now(), Kind: run.NewsRun, Item: item, Text: text})
	}
	return session.Watcher{
		Failed: func(err error) { tell("", "cannot compare the files that are held: "+lockkeeper.Message(err)) },
		Changed: func(c session.HeldChange) {
			if c.Doubt == "" && c.Item != "" {
				tell(c.Item, c.String())
			}
		},
	}
}

// askBaseline asks whether to continue although the tests fail on the unchanged tree.
func (r *flowRun) askBaseline(ctx context.Context, _ *run.Baseline) (bool, error) {
	answer := make(chan error, 1)
	var err error
	r.board.asking(func() {
		go func() { // reading a terminal cannot be canceled
			answer <- r.Agree("starting batches while the tests fail", "If you continue, agents fix nothing that fails now. Otherwise the run stops before its first batch.")
		}()
		select {
		case err = <-answer:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	})
	if _, refused := errors.AsType[*lockkeeper.RefusedError](err); refused {
		return false, nil
	}
	return err == nil, err
}

// conduct runs the flow until every remaining step needs a decision, or a signal ends it.
func (r *flowRun) conduct(ctx context.Context, active *conduct.ActiveRun) error {
	came, forget := command.StopSignals()
	defer forget()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if err := r.introduce(active.Pipeline, ""); err != nil {
		return err
	}
	r.board.begin(ctx, true, func() {})
	stop := make(chan struct{})
	type ending struct {
		out *run.Outcome
		err error
	}
	over := make(chan ending, 1)
	go func() {
		out, err := active.Run(ctx, stop)
		over <- ending{out, err}
	}()
	var by syscall.Signal
	var asked time.Time
	var e ending
	for running := true; running; {
		select {
		case e = <-over:
			running = false
		case s := <-came:
			by, asked = r.interrupted(s, asked, stop, end)
		}
	}
	r.board.end()
	if e.err != nil {
		return e.err
	}
	if cause := context.Cause(ctx); cause != nil && by == 0 {
		return cause
	}
	return r.conclude(context.WithoutCancel(ctx), e.out, by)
}

// errEnded is the cause if a signal ended the run.
var errEnded = errors.New("ended by a signal")

// interrupted handles a signal: the first lets running agents finish, a later one stops them.
func (r *flowRun) interrupted(s os.Signal, asked time.Time, stop chan struct{}, end context.CancelCauseFunc) (syscall.Signal, time.Time) {
	now := r.Now()
	switch {
	case asked.IsZero():
		close(stop)
		asked = now
		working := r.board.working()
		text := "stopping: no agent is running"
		if len(working) > 0 {
			text = fmt.Sprintf("stopping: waiting for %s; press Ctrl-C again to stop them, nothing is lost", strings.Join(working, ", "))
		}
		r.board.hear(run.News{At: now, Kind: run.NewsRun, Text: text})
	case now.Sub(asked) >= jobs.OneAsk:
		r.board.hear(run.News{At: now, Kind: run.NewsRun, Text: "stopping the running agents: their work returns to the queue, and finished work is kept"})
		end(errEnded)
	}
	return s.(syscall.Signal), asked
}

func (r *flowRun) again(flags ...string) string { return r.command(r.o.Only, flags...) }

// command returns the command that resumes the run, with only some units or with all.
func (r *flowRun) command(only []string, flags ...string) string {
	words := []string{"lockkeeper", "run"}
	switch {
	case r.o.Plan != "":
		words = append(words, "--plan", r.o.Plan)
	case !r.flow.IsDefault():
		words = append(words, "--flow", r.flow.Name)
	}
	for _, unit := range only {
		words = append(words, "--only", unit)
	}
	if r.o.Auto != "" {
		words = append(words, "--auto-decide", r.o.Auto)
	}
	if r.o.USD > 0 && !slices.Contains(flags, "--budget") {
		words = append(words, "--budget", new(term.Dollars(r.o.USD)).String())
	}
	return shellword.Join(append(words, flags...))
}

// withUI serves the dashboard while body runs.
func (r *flowRun) withUI(ctx context.Context, body func() error) error {
	if r.o.noUI {
		return body()
	}
	b, err := server.OpenDashboard(ctx, r.Program, r.a, "run")
	if err != nil {
		r.Note("cannot serve the dashboard: %s", term.Clean(err.Error()))
		return body()
	}
	if !r.JSON {
		if err := b.Announce(ctx); err != nil {
			return errors.Join(err, b.Close())
		}
	}
	return errors.Join(body(), b.Close())
}
