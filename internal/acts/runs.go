package acts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"lockkeeper"
	"lockkeeper/internal/app"
	"lockkeeper/internal/dossier"
	"lockkeeper/internal/pipeline"
	"lockkeeper/internal/process"
)

// StartOptions say which run is meant, and how far it goes.
type StartOptions struct {
	Flow   string   `json:"flow,omitempty"`        // empty: the one under way, else controllers
	Plan   string   `json:"plan,omitempty"`        // of the flow tasks: the file
	Only   []string `json:"only,omitempty"`        // units, or parts of them; none: all
	Auto   string   `json:"auto_decide,omitempty"` // a policy that decides in place of a person
	Slots  int      `json:"slots,omitempty"`       // agents at once; 0: as configured
	USD    float64  `json:"budget_usd,omitempty"`
	Tokens int64    `json:"budget_tokens,omitempty"`
	Branch string   `json:"branch,omitempty"`
	Retry  bool     `json:"retry,omitempty"` // what failed before is tried again
	New    bool     `json:"new,omitempty"`   // a run that is not finished is left behind
	Wait   bool     `json:"wait,omitempty"`  // do not end while people are needed

	By lockkeeper.Actor `json:"-"`

	wants bool // only what Phase names, of which more may come
}

// mostSlots is far more agents than one machine can run at once.
const mostSlots = 1_000

// check refuses what no run can be, and reads the policy; nil: there is none.
func (o StartOptions) check() (*dossier.Policy, error) {
	wrong := func(field string, value any, next string) error {
		return &lockkeeper.InputError{Field: field, Value: fmt.Sprint(value), Reason: "out of range", Next: next}
	}
	switch {
	case o.Slots < 0 || o.Slots > mostSlots:
		return nil, wrong("slots", o.Slots, fmt.Sprintf("say how many agents may work at once, 1 to %d", mostSlots))
	case !(o.USD >= 0 && o.USD <= 1e6):
		return nil, wrong("budget_usd", o.USD, "give dollars, such as 20, or leave it out")
	case o.Tokens < 0:
		return nil, wrong("budget_tokens", o.Tokens, "give a number such as 5000000, or leave it out")
	case o.Auto == "":
		return nil, nil
	}
	policy, err := dossier.ParsePolicy(o.Auto)
	return &policy, err
}

// Started is a run that was begun.
type Started struct {
	Run   string    `json:"run"`
	Flow  string    `json:"flow"`
	Units []string  `json:"units"`
	By    string    `json:"by"`
	At    time.Time `json:"at"`
}

// Running is the run that a Runs conducts, or how its last one ended.
type Running struct {
	*Started                   // nil: there was none yet
	Active   bool              `json:"active"`
	Stopping bool              `json:"stopping"`          // nothing new starts
	Outcome  *pipeline.Outcome `json:"outcome,omitempty"` // of one that has ended
	Error    string            `json:"error,omitempty"`
	Warnings []pipeline.News   `json:"warnings,omitempty"` // the latest, the newest last
}

// Told are the warnings of a run of a flow, the newest first.
func (r Running) Told(flow string) []pipeline.News {
	if r.Started == nil || r.Flow != flow {
		return nil
	}
	list := slices.Clone(r.Warnings)
	slices.Reverse(list)
	return list
}

// Troubles are the same in words.
func (r Running) Troubles(flow string) (list []string) {
	for _, n := range r.Told(flow) {
		about := strings.Trim(n.Unit+"/"+n.Batch, "/")
		if about != "" {
			about += ": "
		}
		list = append(list, fmt.Sprintf("%s%s (%s)", about, n.Text, Moment(n.At)))
	}
	return list
}

// Runs conducts runs of flows inside this process, one at a time.
type Runs struct {
	app  *app.App
	env  []string
	tell func(pipeline.News)

	mu     sync.Mutex
	closed bool
	going  *going  // nil: none
	last   Running // that has ended
}

// going is a run that is under way, or about to be. What changes is guarded by Runs.
type going struct {
	Started
	only     []string
	stop     chan struct{} // closed: nothing new starts
	stopping bool
	ctx      context.Context
	end      context.CancelCauseFunc
	over     chan struct{}   // closed when nothing of it runs any more
	wanted   map[string]bool // units, and parts of them; nil: all
	asked    int             // how often more was wanted
	warnings []pipeline.News // the latest
}

// warningsKept is how many of the latest warnings of a run are shown.
const warningsKept = 10

// NewRuns makes a Runs whose agents get an environment. Tell hears what happens, from any
// goroutine, and must not take long; it may be nil.
func NewRuns(a *app.App, env []string, tell func(pipeline.News)) *Runs {
	if tell == nil {
		tell = func(pipeline.News) {}
	}
	return &Runs{app: a, env: env, tell: tell}
}

// hear takes up what happens in a run.
func (r *Runs) hear(g *going, n pipeline.News) {
	if n.Kind == pipeline.NewsWarning {
		r.mu.Lock()
		g.warnings = append(g.warnings[max(0, len(g.warnings)+1-warningsKept):], n)
		r.mu.Unlock()
	}
	r.tell(n)
}

// errEnded is the cause of a run that was told to end at once.
var errEnded = errors.New("it was told to end")

// Start begins a run, which goes on when ctx has ended. Somebody else who conducts is a
// *lockkeeper.BlockedError.
func (r *Runs) Start(ctx context.Context, o StartOptions) (Started, error) {
	policy, err := o.check()
	if err != nil {
		return Started{}, err
	}
	g, err := r.reserve(o)
	if err != nil {
		return Started{}, err
	}
	lead, fo, err := r.prepare(ctx, g, o)
	if err != nil {
		r.release(g)
		return Started{}, err
	}
	ro := pipeline.RunOptions{Only: o.Only, Auto: policy, By: o.By.Name, Wait: o.Wait, Retry: o.Retry, Stop: g.stop}
	if o.wants {
		ro.Only, ro.Wants = nil, func(unit, part string) bool { return r.isWanted(g, unit, part) }
	}
	go r.conduct(g, lead, fo, ro)
	return g.Started, nil
}

// reserve takes the place of the one run.
func (r *Runs) reserve(o StartOptions) (*going, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	const act = "starting a run"
	if r.closed {
		return nil, &lockkeeper.RefusedError{Act: act, Reason: "this server is being ended", Next: "start it again"}
	}
	if g := r.going; g != nil {
		return nil, &lockkeeper.RefusedError{Act: act, Reason: fmt.Sprintf("%s started one at %s, which is under way", g.By, Moment(g.At)), Next: "let it end, or stop it"}
	}
	g := &going{Started: Started{Flow: o.Flow, By: o.By.Name, At: time.Now().UTC()}, only: o.Only, stop: make(chan struct{}), over: make(chan struct{})}
	if o.wants {
		g.wanted = map[string]bool{}
		for _, name := range o.Only {
			g.wanted[name] = true
		}
	}
	g.ctx, g.end = context.WithCancelCause(context.Background())
	r.going = g
	return g, nil
}

// release gives the place up of a run that could not be begun.
func (r *Runs) release(g *going) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.going = nil
	g.end(nil)
	close(g.over)
}

// prepare does all that can go wrong before a run begins.
func (r *Runs) prepare(ctx context.Context, g *going, o StartOptions) (lead *app.Lead, fo app.FlowOptions, err error) {
	fo = app.FlowOptions{Plan: o.Plan, Slots: o.Slots, USD: o.USD, Tokens: o.Tokens, Branch: o.Branch, New: o.New, Env: r.env, By: o.By, Tell: func(n pipeline.News) { r.hear(g, n) }}
	if fo.Flow, err = r.app.FlowName(o.Flow, o.Plan); err != nil {
		return nil, fo, err
	}
	seen, err := r.survey(ctx, fo, o.Only) // what is wrong changes nothing
	if err != nil {
		return nil, fo, err
	}
	if err := r.app.CheckRun(ctx, fo, seen); err != nil {
		return nil, fo, err
	}
	if lead, err = r.lead(ctx, fo); err != nil {
		return nil, fo, err
	}
	run, err := r.app.CurrentRun()
	if err == nil {
		err = r.app.Decided(ctx, o.By, startedInWords(run.ID, fo.Flow, o.Only))
	}
	if err != nil {
		return nil, fo, errors.Join(err, lead.Close(ctx))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	g.Run, g.Flow, g.Units = run.ID, fo.Flow, seen.Units()
	return lead, fo, nil
}

func startedInWords(run, flow string, only []string) string {
	what := fmt.Sprintf("run %s of the flow %s is started", run, flow)
	if len(only) > 0 {
		what += ", of " + strings.Join(only, ", ")
	}
	return what
}

func (r *Runs) lead(ctx context.Context, fo app.FlowOptions) (*app.Lead, error) {
	holder, err := process.Holder()
	if err != nil {
		return nil, err
	}
	return r.app.Lead(ctx, holder, fo)
}

// survey looks at a flow, or at some units of it, and begins nothing.
func (r *Runs) survey(ctx context.Context, fo app.FlowOptions, only []string) (*pipeline.Pipeline, error) {
	fo.Look, fo.Tell = true, nil
	seen, err := r.app.Pipeline(ctx, fo)
	if err != nil {
		return nil, err
	}
	return seen, seen.Survey(ctx, only)
}

// conduct runs the flow to its end, and once more if units were asked for too late to be
// seen by it.
func (r *Runs) conduct(g *going, lead *app.Lead, fo app.FlowOptions, ro pipeline.RunOptions) {
	defer close(g.over)
	defer g.end(nil)
	for {
		r.mu.Lock()
		asked := g.asked
		r.mu.Unlock()
		out, err := lead.Run(g.ctx, ro)
		err = errors.Join(err, lead.Close(g.ctx))
		if !r.ended(g, asked, out, err) {
			fo.New = false
			if lead, err = r.lead(g.ctx, fo); err == nil {
				continue
			}
			r.ended(g, asked, out, err)
		}
		if err != nil {
			r.tell(pipeline.News{At: time.Now(), Kind: pipeline.NewsFailed, Text: "the run has ended: " + err.Error()})
		}
		return
	}
}

// ended notes how a run ended, unless more was asked for since it began.
func (r *Runs) ended(g *going, asked int, out *pipeline.Outcome, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if g.asked != asked && err == nil && !out.Stopped {
		return false
	}
	r.last = Running{Started: &g.Started, Stopping: g.stopping, Outcome: out, Warnings: g.warnings}
	if err != nil {
		r.last.Error = err.Error()
	}
	r.going = nil
	return true
}

// StopOptions say which run is meant, and when it ends.
type StopOptions struct {
	Run string `json:"run,omitempty"` // that the person saw; empty: whichever is under way
	Now bool   `json:"now,omitempty"` // at once; else when its agents have finished what they do
}

// Stop has the run end. With Now nothing of it runs when Stop returns. Who did it is
// recorded.
func (r *Runs) Stop(ctx context.Context, o StopOptions, by lockkeeper.Actor) error {
	r.mu.Lock()
	g := r.going
	if err := o.meant(g); err != nil {
		r.mu.Unlock()
		return err
	}
	if !g.stopping {
		g.stopping = true
		close(g.stop)
	}
	what := fmt.Sprintf("the run that %s started at %s is to end", g.By, Moment(g.At))
	r.mu.Unlock()
	if o.Now {
		what += " at once"
		g.end(errEnded)
		<-g.over
	}
	if err := r.app.Decided(ctx, by, what); err != nil {
		return fmt.Errorf("%s, and that could not be recorded: %w", what, err)
	}
	return nil
}

// meant refuses to stop a run that is not the one that is meant.
func (o StopOptions) meant(g *going) error {
	const act = "stopping the run"
	switch {
	case g == nil:
		return &lockkeeper.RefusedError{Act: act, Reason: "none is under way here", Next: "lockkeeper status says who conducts"}
	case o.Run != "" && o.Run != g.Run:
		return &lockkeeper.RefusedError{Act: act, Reason: fmt.Sprintf("run %s is over, and %s started another one at %s, which is under way", o.Run, g.By, Moment(g.At)), Next: "look at that one"}
	}
	return nil
}

// Now says what is under way, or how the last run ended.
func (r *Runs) Now() Running {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.going == nil {
		return r.last
	}
	begun := r.going.Started
	begun.Units = slices.Clone(begun.Units)
	return Running{Started: &begun, Active: true, Stopping: r.going.stopping, Warnings: slices.Clone(r.going.warnings)}
}

// Wait waits until no run is under way, and says how the last one ended.
func (r *Runs) Wait(ctx context.Context) (Running, error) {
	r.mu.Lock()
	g := r.going
	r.mu.Unlock()
	if g != nil {
		select {
		case <-g.over:
		case <-ctx.Done():
			return r.Now(), context.Cause(ctx)
		}
	}
	return r.Now(), nil
}

// Close ends what is under way. Nothing of it runs when it returns, and nothing starts any
// more.
func (r *Runs) Close() error {
	r.mu.Lock()
	r.closed = true
	g := r.going
	r.mu.Unlock()
	if g != nil {
		g.end(errEnded)
		<-g.over
	}
	return nil
}
