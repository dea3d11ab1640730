package cli

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
	"lockkeeper/internal/app"
	"lockkeeper/internal/dossier"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/pipeline"
	"lockkeeper/internal/process"
)

type runOptions struct {
	flow, plan         string
	only               []string
	auto               string
	policy             *dossier.Policy
	slots              int
	usd                dollars
	tokens             int64
	branch             string
	retry, wait, fresh bool
	dry, noUI          bool
	conducting         []string // the flags that were given which only tell whoever conducts what to do
}

func (p *program) runCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run a flow over the codebase: analyse, change, test and land",
		Long: `Run a flow over the codebase. controllers takes each controller from an analysis
to tested changes, screens does so from a manifest of screens, and tasks does what
the prompts of a plan file say. Agents work in copies of the codebase; what they
change is tested there and lands through the gate, under locks on the files that
were declared, so that nobody writes over anybody else. A plan file:

  tests: [make test]
  tasks:
    - name: rate-limit
      prompt: Limit sign-ins to five a minute.
      writes: [app/controllers/sessions_controller.rb]

It ends when nothing is left that goes on by itself: then people may be needed, see
lockkeeper decide. What was done is kept, so the same command goes on where the last
one ended, also after a crash. Of a space one process conducts the flow; another run
shows what that one does.

Ctrl-C lets what runs finish and starts nothing new; once more, a second or more
later, ends what runs, which goes back to the queue.

The exit code is 0 when all is complete or only people are needed, 1 when something
failed or whoever conducted it died, and 7 when the budget is used up. With --json
each line is an object, the last one says how far it came.`,
		Example: `  lockkeeper run
  lockkeeper run --dry-run
  lockkeeper run --flow screens --slots 4 --budget 20
  lockkeeper run --plan tasks.yaml
  lockkeeper run --plan tasks.yaml --only rate-limit
  lockkeeper run --only blog/posts --auto-decide "impact>=medium,topics=reject"
  lockkeeper run --retry`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.parse(cmd); err != nil {
				return err
			}
			return p.withQueue(cmd.Context(), p.settings(), func(a *app.App, q *app.Queue) error {
				return (&flowRun{program: p, a: a, q: q, o: &o}).run(cmd.Context())
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.flow, "flow", "", "the `flow`: controllers, screens or tasks (default: the one under way, else controllers)")
	f.StringVar(&o.plan, "plan", "", "the `file` with the tasks of the flow tasks")
	f.StringArrayVar(&o.only, "only", nil, "only this `unit`, such as blog/posts, or this batch or screen of one, such as blog/posts/b1, or this task; repeatable")
	f.StringVar(&o.auto, "auto-decide", "", "decide by this `policy` in place of a person: all, none, or such as impact>=medium,topics=reject")
	f.IntVar(&o.slots, "slots", 0, "so many `agents` at once (default: max_claude_concurrency)")
	f.Var(&o.usd, "budget", "`dollars` that the run may spend, with what it has spent before (default: run.budget_usd)")
	f.Int64Var(&o.tokens, "tokens", 0, "tokens that the run may spend, with what it has spent before (default: run.budget_tokens)")
	f.StringVar(&o.branch, "branch", "", "the `branch` to work on (default: run.branch, else the present one)")
	f.BoolVar(&o.retry, "retry", false, "try again what failed before")
	f.BoolVar(&o.wait, "wait", false, "do not end while people are needed")
	f.BoolVar(&o.fresh, "new", false, "begin a new run, with a budget of its own")
	f.BoolVar(&o.noUI, "no-ui", false, "do not serve the dashboard meanwhile")
	f.BoolVar(&o.dry, "dry-run", false, "show what would be done, and change nothing")
	return cmd
}

// parse checks what was typed.
func (o *runOptions) parse(cmd *cobra.Command) error {
	wrong := func(field string, value any, reason, next string) error {
		return &lockkeeper.InputError{Field: field, Value: fmt.Sprint(value), Reason: reason, Next: next}
	}
	given := cmd.Flags().Changed
	switch {
	case given("slots") && (o.slots < 1 || o.slots > mostSlots):
		return wrong("slots", o.slots, fmt.Sprintf("out of range, must be 1 to %d", mostSlots), "say how many agents may work at once")
	case given("tokens") && o.tokens < 1:
		return wrong("tokens", o.tokens, "out of range", "give a number such as 5000000, or leave it out")
	case given("plan") && o.plan == "":
		return wrong("plan", o.plan, "empty", "name a file with tasks")
	}
	for _, name := range []string{"auto-decide", "slots", "budget", "tokens", "branch", "retry", "wait"} {
		if given(name) {
			o.conducting = append(o.conducting, "--"+name)
		}
	}
	if !given("auto-decide") {
		return nil
	}
	policy, err := dossier.ParsePolicy(o.auto)
	o.policy = &policy
	return err
}

// flowRun is one call of the command.
type flowRun struct {
	*program
	a     *app.App
	q     *app.Queue
	o     *runOptions
	flow  flow.Flow
	board *runBoard
}

func (r *flowRun) run(ctx context.Context) error {
	name, err := r.a.FlowName(r.o.flow, r.o.plan)
	if err != nil {
		return err
	}
	if r.flow, err = flow.ByName(name); err != nil {
		return err
	}
	seen, err := r.survey(ctx) // before anything is begun: what is wrong changes nothing
	if err != nil {
		return err
	}
	if r.o.dry {
		return r.foresee(ctx, seen)
	}
	if r.o.policy != nil {
		if err := r.noAgent("deciding by a policy"); err != nil {
			return err
		}
	}
	if err := r.a.CheckRun(ctx, r.options(), seen); err != nil {
		return err
	}
	holder, err := process.Holder()
	if err != nil {
		return err
	}
	r.board = newRunBoard(r)
	o := r.options()
	o.Tell = r.board.hear
	lead, err := r.a.Lead(ctx, holder, o)
	var taken *lockkeeper.BlockedError
	if errors.As(err, &taken) {
		return r.join(ctx, taken.Conflicts[0])
	}
	if err != nil {
		return err
	}
	return errors.Join(r.withUI(ctx, func() error { return r.conduct(ctx, lead) }), lead.Close(ctx))
}

func (r *flowRun) options() app.FlowOptions {
	o := r.o
	return app.FlowOptions{Flow: r.flow.Name, Plan: o.plan, Slots: o.slots, USD: float64(o.usd), Tokens: o.tokens, Branch: o.branch, New: o.fresh, Env: r.Env, By: r.actor()}
}

// survey makes a pipeline that only looks.
func (r *flowRun) survey(ctx context.Context) (*pipeline.Pipeline, error) {
	o := r.options()
	o.Look = true
	if r.o.dry {
		o.Tell = func(n pipeline.News) { r.say(n.Text) }
	}
	seen, err := r.a.Pipeline(ctx, o)
	if err != nil {
		return nil, err
	}
	return seen, seen.Survey(ctx, r.o.only)
}

// conduct runs the flow until nothing goes on by itself, or somebody ends it.
func (r *flowRun) conduct(ctx context.Context, lead *app.Lead) error {
	came, forget := endings()
	defer forget()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	r.o.fresh = false // from here on it is the one under way
	seen, err := r.survey(ctx)
	if err != nil {
		return err
	}
	if err := r.introduce(ctx, seen, ""); err != nil {
		return err
	}
	r.board.begin(ctx, seen)
	stop := make(chan struct{})
	type ending struct {
		out *pipeline.Outcome
		err error
	}
	over := make(chan ending, 1)
	go func() {
		out, err := lead.Run(ctx, pipeline.RunOptions{Only: r.o.only, Auto: r.o.policy, By: r.person().Name, Wait: r.o.wait, Retry: r.o.retry, Stop: stop})
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

// errEnded is the cause of a run that was ended by a signal.
var errEnded = errors.New("ended by a signal")

// interrupted does what a signal asks for: the first lets what runs finish, another one
// ends it.
func (r *flowRun) interrupted(s os.Signal, asked time.Time, stop chan struct{}, end context.CancelCauseFunc) (syscall.Signal, time.Time) {
	now := r.Now()
	switch {
	case asked.IsZero():
		close(stop)
		asked = now
		working := r.board.working()
		text := "stopping: no agent is at work"
		if len(working) > 0 {
			text = fmt.Sprintf("stopping: waiting for %s; once more ends them, and nothing is lost", strings.Join(working, ", "))
		}
		r.board.hear(pipeline.News{At: now, Kind: pipeline.NewsRun, Text: text})
	case now.Sub(asked) >= oneAsk:
		r.board.hear(pipeline.News{At: now, Kind: pipeline.NewsRun, Text: "ending what runs: it goes back to the queue, and what was finished is kept"})
		end(errEnded)
	}
	return s.(syscall.Signal), asked
}

// again is the command that goes on with the same.
func (r *flowRun) again(flags ...string) string { return r.command(r.o.only, flags...) }

// command is the command that goes on, with some units or, without any, with all.
func (r *flowRun) command(only []string, flags ...string) string {
	words := []string{"lockkeeper", "run"}
	switch {
	case r.o.plan != "":
		words = append(words, "--plan", r.o.plan)
	case r.flow.Name != flow.Controllers().Name:
		words = append(words, "--flow", r.flow.Name)
	}
	for _, unit := range only {
		words = append(words, "--only", unit)
	}
	if r.o.auto != "" {
		words = append(words, "--auto-decide", r.o.auto)
	}
	if r.o.usd > 0 && !slices.Contains(flags, "--budget") {
		words = append(words, "--budget", r.o.usd.String())
	}
	return typed(append(words, flags...))
}
