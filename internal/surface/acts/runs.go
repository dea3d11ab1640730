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
	*Started              // nil: there was none yet
	Active   bool         `json:"active"`
	Stopping bool         `json:"stopping"`          // nothing new starts
	Outcome  *run.Outcome `json:"outcome,omitempty"` // of one that has ended
	Error    string       `json:"error,omitempty"`
	Warnings []run.News   `json:"warnings,omitempty"` // the latest, the newest last
}

// Told are the warnings of a run of a flow, the newest first.
func (r Running) Told(flow string) []run.News {
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
		list = append(list, fmt.Sprintf("%s%s (%s)", about, n.Text, stamp(n.At)))
	}
	return list
}

// Runs conducts runs of flows inside this process, one at a time.
type Runs struct {
	app  *project.Project
	env  []string
	tell func(run.News)

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
	warnings []run.News      // the latest
}

// warningsKept is how many of the latest warnings of a run are shown.
const warningsKept = 10

// NewRuns makes a Runs whose agents get an environment. Tell hears what happens, from any
// goroutine, and must not take long; it may be nil.
func NewRuns(a *project.Project, env []string, tell func(run.News)) *Runs {
	if tell == nil {
		tell = func(run.News) {}
	}
	return &Runs{app: a, env: env, tell: tell}
}

// hear takes up what happens in a run.
func (r *Runs) hear(g *going, n run.News) {
	if n.Kind == run.NewsWarning {
		r.mu.Lock()
		g.warnings = append(g.warnings[max(0, len(g.warnings)+1-warningsKept):], n)
		r.mu.Unlock()
	}
	r.tell(n)
}

// errEnded is the cause of a run that was told to end at once.
var errEnded = errors.New("it was told to end")

// Start begins a run, which continues after ctx has ended. If another process runs the flow,
// it returns a *lockkeeper.BlockedError.
func (r *Runs) Start(ctx context.Context, o conduct.Options) (Started, error) {
	return r.start(ctx, o, false)
}

// start begins a run. With wants it does only what Only names, to which Phase may add.
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

// reserve takes the place of the one run.
func (r *Runs) reserve(o conduct.Options, wants bool) (*going, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	const act = "starting a run"
	if r.closed {
		return nil, &lockkeeper.RefusedError{Act: act, Reason: "this server is being ended", Next: "start it again"}
	}
	if g := r.going; g != nil {
		return nil, &lockkeeper.RefusedError{Act: act, Reason: fmt.Sprintf("%s started one at %s, which is under way", g.By, stamp(g.At)), Next: "let it end, or stop it"}
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

// release gives the place up of a run that could not be begun.
func (r *Runs) release(g *going) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.going = nil
	g.end(nil)
	close(g.over)
}

// prepare does all that can go wrong before a run begins.
func (r *Runs) prepare(ctx context.Context, g *going, o conduct.Options) (*conduct.Conductor, *conduct.ActiveRun, error) {
	c, err := conduct.New(ctx, r.app, o)
	if err != nil {
		return nil, nil, err
	}
	seen, err := c.Survey(ctx) // a refusal changes nothing
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
		err = conduct.RecordDecision(ctx, r.app, o.By, startedInWords(run.ID, c.Flow.Name, o.Only))
	}
	if err != nil {
		return nil, nil, errors.Join(err, active.Close(ctx))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	g.Run, g.Flow, g.Units = run.ID, c.Flow.Name, seen.Units()
	return c, active, nil
}

func startedInWords(run, flow string, only []string) string {
	what := fmt.Sprintf("run %s of the flow %s is started", run, flow)
	if len(only) > 0 {
		what += ", of " + strings.Join(only, ", ")
	}
	return what
}

// conduct runs the flow to its end, and again if units were wanted too late for the run to
// see them.
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

// ended notes how a run ended, unless more was asked for since it began.
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
	what := fmt.Sprintf("the run that %s started at %s is to end", g.By, stamp(g.At))
	r.mu.Unlock()
	if o.Now {
		what += " at once"
		g.end(errEnded)
		<-g.over
	}
	if err := conduct.RecordDecision(ctx, r.app, by, what); err != nil {
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
		return &lockkeeper.RefusedError{Act: act, Reason: fmt.Sprintf("run %s is over, and %s started another one at %s, which is under way", o.Run, g.By, stamp(g.At)), Next: "look at that one"}
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
