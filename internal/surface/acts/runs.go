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
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/project"
)

// Started describes a run that has started.
type Started struct {
	Run   string    `json:"run"`
	Flow  string    `json:"flow"`
	Units []string  `json:"units"`
	By    string    `json:"by"`
	At    time.Time `json:"at"`
}

// Running describes the current run of a Runs, or the result of its last one.
type Running struct {
	*Started              // nil: no run has started yet
	Active   bool         `json:"active"`
	Stopping bool         `json:"stopping"`          // no new work starts
	Outcome  *run.Outcome `json:"outcome,omitempty"` // result of a run that has ended
	Error    string       `json:"error,omitempty"`
	Warnings []run.News   `json:"warnings,omitempty"` // the latest, newest last
}

// Told returns the warnings of the run if it is of this flow, newest first.
func (r Running) Told(flow string) []run.News {
	if r.Started == nil || r.Flow != flow {
		return nil
	}
	list := slices.Clone(r.Warnings)
	slices.Reverse(list)
	return list
}

// Troubles returns the warnings of Told as text.
func (r Running) Troubles(flow string) (list []string) {
	for _, n := range r.Told(flow) {
		about := strings.Trim(n.Unit+"/"+n.Batch, "/")
		if about != "" {
			about += ": "
		}
		list = append(list, fmt.Sprintf("%s%s (%s)", about, n.Text, stamp(n.At)))
	}
	return list
}

// Runs executes runs of flows inside this process, one at a time.
type Runs struct {
	app  *project.Project
	env  []string
	tell func(run.News)

	mu     sync.Mutex
	closed bool
	going  *going  // the current run; nil: none
	last   Running // the last run that ended
}

// going is a run that is active or about to start. The mutex of Runs guards its mutable fields.
type going struct {
	Started
	only     []string
	stop     chan struct{} // closed: no new work starts
	stopping bool
	ctx      context.Context
	end      context.CancelCauseFunc
	over     chan struct{}   // closed when the run has ended completely
	wanted   map[string]bool // requested units and parts; nil: all
	asked    int             // how often Phase requested more work
	warnings []run.News      // the latest warnings
}

// warningsKept limits how many of a run's latest warnings are shown.
const warningsKept = 10

// NewRuns returns a Runs whose agents get env as their environment. It calls the function tell with
// news of a run, from any goroutine. tell must return quickly and may be nil.
func NewRuns(a *project.Project, env []string, tell func(run.News)) *Runs {
	if tell == nil {
		tell = func(run.News) {}
	}
	return &Runs{app: a, env: env, tell: tell}
}

// hear records a warning of a run and forwards all news.
func (r *Runs) hear(g *going, n run.News) {
	if n.Kind == run.NewsWarning {
		r.mu.Lock()
		g.warnings = append(g.warnings[max(0, len(g.warnings)+1-warningsKept):], n)
		r.mu.Unlock()
	}
	r.tell(n)
}

// errEnded is the cancellation cause of a run that was stopped at once.
var errEnded = errors.New("the run was stopped")

// Start begins a run, which continues after ctx has ended. If another process runs the flow,
// it returns a *lockkeeper.BlockedError.
func (r *Runs) Start(ctx context.Context, o conduct.Options) (Started, error) {
	return r.start(ctx, o, false)
}

// start starts a run. If wants is set, the run does only the work that Only names, and Phase can add more.
func (r *Runs) start(ctx context.Context, o conduct.Options, wants bool) (Started, error) {
	if _, err := o.Policy(); err != nil {
		return Started{}, err
	}
	g, err := r.reserve(o, wants)
	if err != nil {
		return Started{}, err
	}
	o.Env, o.Tell = r.env, func(n run.News) { r.hear(g, n) }
	if wants {
		o.Wants = func(unit, part string) bool { return r.isWanted(g, unit, part) }
	}
	c, active, err := r.prepare(ctx, g, o)
	if err != nil {
		r.release(g)
		return Started{}, err
	}
	go r.conduct(g, c, active)
	return g.Started, nil
}

// reserve registers the current run, or fails if there is one already.
func (r *Runs) reserve(o conduct.Options, wants bool) (*going, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	const act = "starting a run"
	if r.closed {
		return nil, &lockkeeper.RefusedError{Act: act, Reason: "the server is stopping", Next: "start the server again"}
	}
	if g := r.going; g != nil {
		return nil, &lockkeeper.RefusedError{Act: act, Reason: fmt.Sprintf("%s started a run at %s, which is still active", g.By, stamp(g.At)), Next: "wait until it ends, or stop it"}
	}
	g := &going{Started: Started{Flow: o.Flow, By: o.By.Name, At: time.Now().UTC()}, only: o.Only, stop: make(chan struct{}), over: make(chan struct{})}
	if wants {
		g.wanted = map[string]bool{}
		for _, name := range o.Only {
			g.wanted[name] = true
		}
	}
	g.ctx, g.end = context.WithCancelCause(context.Background())
	r.going = g
	return g, nil
}

// release removes the registration of a run that could not start.
func (r *Runs) release(g *going) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.going = nil
	g.end(nil)
	close(g.over)
}

// prepare does everything that can fail before a run starts.
func (r *Runs) prepare(ctx context.Context, g *going, o conduct.Options) (*conduct.Conductor, *conduct.ActiveRun, error) {
	c, err := conduct.New(ctx, r.app, o)
	if err != nil {
		return nil, nil, err
	}
	seen, err := c.Survey(ctx) // Survey only reads, so a refusal changes nothing
	if err != nil {
		return nil, nil, err
	}
	if err := c.Check(ctx, seen); err != nil {
		return nil, nil, err
	}
	active, err := c.Start(ctx)
	if err != nil {
		return nil, nil, err
	}
	run, err := conduct.CurrentRun(r.app)
	if err == nil {
		what := fmt.Sprintf("run %s of the flow %s is started", run.ID, c.Flow.Name)
		if len(o.Only) > 0 {
			what += ", of " + strings.Join(o.Only, ", ")
		}
		err = conduct.RecordDecision(ctx, r.app, o.By, what)
	}
	if err != nil {
		return nil, nil, errors.Join(err, active.Close(ctx))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	g.Run, g.Flow, g.Units = run.ID, c.Flow.Name, seen.Units()
	return c, active, nil
}

// conduct runs the flow until it ends. It runs the flow again if work was requested too late for the run to see
// it.
func (r *Runs) conduct(g *going, c *conduct.Conductor, active *conduct.ActiveRun) {
	defer close(g.over)
	defer g.end(nil)
	for {
		r.mu.Lock()
		asked := g.asked
		r.mu.Unlock()
		out, err := active.Run(g.ctx, g.stop)
		err = errors.Join(err, active.Close(g.ctx))
		if !r.ended(g, asked, out, err) {
			if active, err = c.Start(g.ctx); err == nil {
				continue
			}
			r.ended(g, asked, out, err)
		}
		if err != nil {
			r.tell(run.News{At: time.Now(), Kind: run.NewsFailed, Text: "the run has ended: " + err.Error()})
		}
		return
	}
}

// ended records the result of a run. It returns false if more work was requested since the run began.
func (r *Runs) ended(g *going, asked int, out *run.Outcome, err error) bool {
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

// StopOptions says which run to stop, and when.
type StopOptions struct {
	Run string `json:"run,omitempty"` // the run that the person saw; empty: the current one
	Now bool   `json:"now,omitempty"` // stop the agents at once; otherwise let them finish
}

// Stop stops the run and records the person. With Now, the run has ended completely when Stop returns.
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
	what := fmt.Sprintf("the run that %s started at %s must stop", g.By, stamp(g.At))
	r.mu.Unlock()
	if o.Now {
		what += " at once"
		g.end(errEnded)
		<-g.over
	}
	if err := conduct.RecordDecision(ctx, r.app, by, what); err != nil {
		return fmt.Errorf("%s, but this could not be recorded: %w", what, err)
	}
	return nil
}

// meant returns an error if g is not the run that the person saw.
func (o StopOptions) meant(g *going) error {
	const act = "stopping the run"
	switch {
	case g == nil:
		return &lockkeeper.RefusedError{Act: act, Reason: "no run is active here", Next: "lockkeeper status shows which process runs the flow"}
	case o.Run != "" && o.Run != g.Run:
		return &lockkeeper.RefusedError{Act: act, Reason: fmt.Sprintf("run %s has ended, and %s started another run at %s", o.Run, g.By, stamp(g.At)), Next: "look at the current run"}
	}
	return nil
}

// Now returns the current run, or the result of the last one.
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

// Wait waits until no run is active, and returns the result of the last one.
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

// Close stops the current run and prevents new ones. When it returns, the run has ended completely.
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
