package conduct

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/flow/simulate"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
	"lockkeeper/sched"
)

// A Prediction says how long a run will take from its start, or from its last resume.
type Prediction struct {
	At      time.Time `json:"at"`
	Seconds float64   `json:"predicted_seconds"`
	Slots   int       `json:"slots"`
	Calls   int       `json:"recorded_calls"`         // the calls from which the durations come
	Later   int       `json:"unknown_work,omitempty"` // units with later work that was not known
	Spread  float64   `json:"spread,omitempty"`       // how much the recorded durations of a phase differ from their median, relative to it
	Took    float64   `json:"took_seconds,omitempty"` // without waiting for people and rate limits; 0: not ended, or stopped before
}

// String says what was predicted and how long the run took, in one line.
func (p *Prediction) String() string {
	text := "predicted " + seconds(p.Seconds)
	if p.Took > 0 {
		text += ", took " + seconds(p.Took)
	}
	if p.Calls == 0 {
		text += "; no calls recorded yet: 5 minutes assumed for each"
	}
	switch {
	case p.Later == 1:
		text += "; without later work of 1 unit, which was not known"
	case p.Later > 1:
		text += fmt.Sprintf("; without later work of %d units, which was not known", p.Later)
	}
	return text
}

// seconds formats seconds for people.
func seconds(s float64) string {
	switch {
	case s < 10:
		return fmt.Sprintf("%.1f s", s)
	case s < 600:
		return fmt.Sprintf("%.0f s", s)
	}
	return strings.TrimSuffix(time.Duration(s*float64(time.Second)).Round(time.Minute).String(), "0s")
}

// predict predicts how long the run takes. It returns nil if no work is known.
func predict(ctx context.Context, c *config.Config, p *run.Pipeline) (*Prediction, error) {
	work, err := p.Expect(ctx)
	if err != nil || len(work.Items) == 0 {
		return nil, err
	}
	plan := &simulate.Plan{}
	for _, it := range work.Items {
		plan.Items = append(plan.Items, simulate.Item{Name: it.Name, Phase: it.Phase, Project: it.Project,
			Duration: it.Agents + it.Tests + it.Outside, Tests: it.Tests, Outside: it.Outside, Reads: it.Reads, Writes: it.Writes, After: it.After})
	}
	finish, _, err := simulate.Predict(ctx, plan, simulate.Options{Slots: work.Slots, Tests: work.Tests, Scheduler: SchedulerOptions(c)})
	if err != nil {
		return nil, err
	}
	return &Prediction{At: time.Now().UTC(), Seconds: finish.Seconds(), Slots: work.Slots, Calls: work.Calls, Later: work.Later, Spread: work.Spread}, nil
}

// SchedulerOptions returns the options of the queue that matter for a simulation.
func SchedulerOptions(c *config.Config) sched.Options {
	retries := c.MaxLockRetries
	if retries == 0 {
		retries = -1 // -1 means none, because 0 means the default
	}
	return sched.Options{LockTimeout: c.LockTimeout, MaxLockRetries: retries}
}

// TaskTimes returns what is known about tasks from earlier runs of the codebase at root, for a
// simulation. Without a root, nothing is known.
func TaskTimes(root string, c *config.Config) (simulate.Times, error) {
	times := simulate.Times{LockReads: locksReads(c, flow.Tasks())}
	if root == "" {
		return times, nil
	}
	f := flow.Tasks()
	known, err := run.ReadDurations(filepath.Join(root, filepath.FromSlash(callsDir)), f)
	if err != nil {
		return times, err
	}
	times.Of = func(task string) (simulate.Took, bool) {
		t, ran := known.Batch(f, run.Work{Unit: f.OneUnit, Part: task}.Name(), f.FirstOfBatch())
		return simulate.Took{Slot: t.Agents, Tests: t.Tests, Outside: t.Outside}, ran
	}
	return times, nil
}

func locksReads(c *config.Config, f flow.Flow) bool {
	return c.Run.LockReads == "on" || c.Run.LockReads == "auto" && f.LocksReads
}

// foretell stores the prediction of a run that starts. A run continues without a prediction.
func (r *ActiveRun) foretell(ctx context.Context, a *project.Project) error {
	said, err := predict(ctx, a.Config, r.Pipeline)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		r.c.tell(run.News{At: time.Now(), Kind: run.NewsWarning, Text: "cannot predict how long the run takes: " + err.Error()})
	}
	weights, recorded := r.Weights()
	return changeRun(ctx, a, func(r *Run) {
		r.Prediction, r.Newest, r.Pause = said, said, nil
		if r.Weights == nil { // a resumed run keeps its weights, so that its progress takes nothing back
			r.Weights, r.Recorded = weights, recorded
		}
	})
}

// judge stores how long the run took, unless it was stopped.
func (r *ActiveRun) judge(ctx context.Context, began time.Time, out *run.Outcome) error {
	if out.Stopped || out.Budget != "" {
		return nil
	}
	took := max(time.Since(began)-r.Waited(), time.Millisecond)
	var said *Prediction
	err := changeRun(ctx, r.c.project, func(r *Run) {
		if said = r.Prediction; said != nil {
			said.Took = took.Seconds()
		}
	})
	if err != nil || said == nil {
		return err
	}
	return keepPrediction(ctx, r.c.project, r.c.Flow.Name, *said)
}
