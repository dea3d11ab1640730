package simulate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/sched"
)

// A Span is a duration, in JSON as seconds.
type Span time.Duration

func (s Span) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(s).Seconds()) }

// Options configure a simulation.
type Options struct {
	Slots     int           // concurrent agents
	Tests     int           // concurrent tests; 0: no limit
	Orders    int           // how many random orders to compare with; 0: none
	Scheduler sched.Options // the options of the real run
}

// A Report is the prediction for a plan.
type Report struct {
	Items int   `json:"items"`
	Slots int   `json:"slots"`
	Bound Bound `json:"lower_bound"`

	Prediction Outcome   `json:"prediction"`
	Others     []Outcome `json:"others"` // results of the plan with other strategies

	Durations map[Source]int `json:"durations,omitempty"`       // for a plan of tasks: number of durations, by source
	Assumed   Span           `json:"assumed_seconds,omitempty"` // for a plan of tasks: duration of the tasks that nothing is known about

	Files    []FileWait `json:"files"` // the files that items waited for, the longest wait first
	Tiers    []TierWait `json:"tiers"`
	Schedule []Slice    `json:"schedule"` // in the order of starts
	Left     []Left     `json:"left"`     // items that never complete; the other fields exclude them
}

// An Outcome is the result of one strategy.
type Outcome struct {
	Scheduler string  `json:"scheduler"`
	Finish    Span    `json:"finish_seconds"`
	Above     float64 `json:"above_bound_percent"`
	Use       float64 `json:"slots_in_use_percent"`
}

const (
	Lockkeeper = "lockkeeper"
	InOrder    = "in order" // no item overtakes a blocked one
	Polling    = "polling"  // a walk in priority order every half second
	Random     = "random"   // the best of some random orders that skip blocked items
)

// A FileWait is the waiting time for one path.
type FileWait struct {
	Path    string `json:"path"`
	Tier    Tier   `json:"tier"`
	Blocked Span   `json:"blocked_seconds"`
	Items   int    `json:"items"` // number of items that waited for the file
}

// A TierWait sums up the paths of one tier.
type TierWait struct {
	Tier    Tier `json:"tier"`
	Paths   int  `json:"paths"` // number of paths in the plan
	Blocked Span `json:"blocked_seconds"`
	Items   int  `json:"items"`
}

// A Slice is the time in which one item runs.
type Slice struct {
	Name    string `json:"name"`
	Start   Span   `json:"start_seconds"`
	End     Span   `json:"end_seconds"`
	Blocked Span   `json:"blocked_seconds"` // time blocked by locks before the start
}

// A Left is an item that never completes.
type Left struct {
	Name   string   `json:"name"`
	Reason string   `json:"reason"`
	Waited Span     `json:"waited_seconds,omitempty"`
	Paths  []string `json:"paths,omitempty"` // the paths that blocked the item at the end
}

// Run predicts how a plan will run.
func Run(ctx context.Context, p *Plan, opt Options) (rep *Report, err error) {
	err = simulated(ctx, p, opt, func(s *simulation, left []Left) { rep = s.report(p, opt, left) })
	return rep, err
}

// Predict returns only when the last item of a plan ends, as Run does.
func Predict(ctx context.Context, p *Plan, opt Options) (finish time.Duration, left []Left, err error) {
	err = simulated(ctx, p, opt, func(s *simulation, rest []Left) { finish, left = s.finish(), rest })
	return finish, left, err
}

// simulated simulates a plan and calls read at its end.
func simulated(ctx context.Context, p *Plan, opt Options, read func(s *simulation, left []Left)) (err error) {
	if opt.Slots < 1 {
		return &lockkeeper.InputError{Field: "slots", Value: fmt.Sprint(opt.Slots), Reason: "out of range", Next: "use at least 1"}
	}
	if err := p.check(); err != nil {
		return err
	}
	s, err := newSimulation(p, opt.Slots, opt.Tests, opt.Scheduler)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.enqueue(ctx, p); err != nil {
		return err
	}
	if err := s.work(ctx); err != nil {
		return err
	}
	left, err := s.left(ctx)
	if err == nil {
		read(s, left)
	}
	return err
}

// finish returns when the last item ends.
func (s *simulation) finish() (last time.Duration) {
	for _, r := range s.began {
		last = max(last, r.end)
	}
	return last
}

// report makes the report from completed items only, so that all figures describe the same work.
func (s *simulation) report(p *Plan, opt Options, left []Left) *Report {
	missing := map[string]bool{}
	for _, l := range left {
		missing[l.Name] = true
	}
	var done []*Item
	for i := range p.Items {
		if it := &p.Items[i]; !missing[it.Name] {
			done = append(done, it)
		}
	}
	m := newModel(done, opt.Slots, opt.Tests)
	rep := &Report{Items: len(done), Slots: opt.Slots, Bound: m.bound(), Left: left, Files: []FileWait{}, Durations: p.Sources, Assumed: Span(p.Assumed)}
	rep.Prediction = rep.outcome(m, Lockkeeper, s.finish())
	rep.Others = []Outcome{rep.outcome(m, InOrder, m.finish(m.firstComeFirstServed())), rep.outcome(m, Polling, m.finish(m.polling()))}
	if opt.Orders > 0 {
		r := rand.New(rand.NewPCG(1, 1)) // a fixed seed gives the same orders each time
		best := m.finish(m.randomly(r))
		for range opt.Orders - 1 {
			best = min(best, m.finish(m.randomly(r)))
		}
		rep.Others = append(rep.Others, rep.outcome(m, Random, best))
	}
	blocked := rep.waits(m, s.store.blocked)
	for _, r := range s.began {
		rep.Schedule = append(rep.Schedule, Slice{Name: r.item.Name, Start: Span(r.start), End: Span(r.end), Blocked: blocked[r.item.Name]})
	}
	return rep
}

func (r *Report) outcome(m *model, scheduler string, finish time.Duration) Outcome {
	return Outcome{Scheduler: scheduler, Finish: Span(finish),
		Above: 100 * (float64(finish)/float64(r.Bound.Finish) - 1),
		Use:   100 * float64(m.work()) / float64(finish) / float64(m.slots)}
}

// waits adds the files that items waited for, and returns the waiting time of each item.
func (r *Report) waits(m *model, blocked map[string]map[string]time.Duration) map[string]Span {
	done := map[string]bool{}
	for _, it := range m.items {
		done[it.Name] = true
	}
	tiers := map[Tier]*TierWait{}
	waiters := map[Tier]map[string]bool{}
	for _, tier := range allTiers {
		tiers[tier], waiters[tier] = &TierWait{Tier: tier}, map[string]bool{}
	}
	sums := map[string]Span{}
	for _, path := range m.paths.sorted {
		f := FileWait{Path: path, Tier: m.tier(path)}
		tier := tiers[f.Tier]
		tier.Paths++
		for item, d := range blocked[path] {
			if !done[item] {
				continue
			}
			f.Items++
			f.Blocked += Span(d)
			sums[item] += Span(d)
			waiters[f.Tier][item] = true
		}
		tier.Blocked += f.Blocked
		if f.Items > 0 {
			r.Files = append(r.Files, f)
		}
	}
	slices.SortFunc(r.Files, func(a, b FileWait) int {
		return cmp.Or(cmp.Compare(b.Blocked, a.Blocked), cmp.Compare(a.Path, b.Path))
	})
	for _, tier := range allTiers {
		tiers[tier].Items = len(waiters[tier])
		r.Tiers = append(r.Tiers, *tiers[tier])
	}
	return sums
}

// A Tier describes how many items contend for a file. It is for people; the scheduler does not
// use it.
type Tier string

const (
	TierApp        Tier = "app"        // several projects use the file
	TierModule     Tier = "module"     // several controllers of one project use the file
	TierController Tier = "controller" // one controller uses the file
)

var allTiers = []Tier{TierApp, TierModule, TierController}

// tier returns the tier of a path, from the items that use it or paths above or below it.
func (m *model) tier(path string) Tier {
	var first *Item
	tier := TierController
	m.paths.around(path, func(u use) {
		it := m.items[u.item]
		switch {
		case first == nil:
			first = it
		case it.Project != first.Project:
			tier = TierApp
		case tier == TierController && it.controller() != first.controller():
			tier = TierModule
		}
	})
	return tier
}
