package simulate_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"lockkeeper/internal/flow/simulate"
)

// For every random plan the schedule is feasible, no schedule ends before the bound, and the sums
// agree.
//
// shows: SW-27 PL-33
func TestRandomPlans(t *testing.T) {
	const plans = 40
	complete := 0
	for seed := range uint64(plans) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := randomPlan(r, 2+r.IntN(40))
		slots := 1 + r.IntN(8)
		rep := run(t, p, slots)
		if len(rep.Left) > 0 {
			continue // a failed item has no times
		}
		complete++
		checkSchedule(t, seed, p, slots, rep)
		for _, o := range append([]simulate.Outcome{rep.Prediction}, rep.Others...) {
			if o.Finish < rep.Bound.Finish || o.Above < 0 || o.Use > 100.000001 {
				t.Errorf("seed %d: %v against a bound of %s", seed, o, time.Duration(rep.Bound.Finish))
			}
		}
		var files, tiers, items simulate.Span
		for _, f := range rep.Files {
			files += f.Blocked
		}
		for _, f := range rep.Tiers {
			tiers += f.Blocked
		}
		for _, s := range rep.Schedule {
			items += s.Blocked
		}
		if files != tiers || files != items {
			t.Errorf("seed %d: blocked %s by files, %s by tiers, %s by items", seed, time.Duration(files), time.Duration(tiers), time.Duration(items))
		}
	}
	if complete < plans/2 {
		t.Errorf("of %d plans %d were completed", plans, complete)
	}
}

func checkSchedule(t *testing.T, seed uint64, p *simulate.Plan, slots int, rep *simulate.Report) {
	t.Helper()
	ran := map[string]simulate.Slice{}
	for _, s := range rep.Schedule {
		ran[s.Name] = s
	}
	if len(ran) != len(p.Items) || len(rep.Schedule) != len(p.Items) {
		t.Fatalf("seed %d: %d of %d items ran, %d times in all", seed, len(ran), len(p.Items), len(rep.Schedule))
	}
	for i, it := range p.Items {
		own := ran[it.Name]
		if time.Duration(own.End-own.Start) != it.Duration {
			t.Errorf("seed %d: %s took %s", seed, it.Name, time.Duration(own.End-own.Start))
		}
		for _, first := range it.After {
			if ran[first].End > own.Start {
				t.Errorf("seed %d: %s began before %s was done", seed, it.Name, first)
			}
		}
		beside := 0
		for j, o := range p.Items {
			other := ran[o.Name]
			if other.Start <= own.Start && own.Start < other.End {
				beside++
			}
			if j > i && other.Start < own.End && own.Start < other.End && conflict(it, o) {
				t.Errorf("seed %d: %s and %s ran side by side", seed, it.Name, o.Name)
			}
		}
		if beside > slots {
			t.Errorf("seed %d: %d ran in %d slots", seed, beside, slots)
		}
	}
}

// The bound is never above the optimum, which is found by trying every order, and often equals
// it.
func TestBoundAndBestSchedule(t *testing.T) {
	met := 0
	const plans = 60
	for seed := range uint64(plans) {
		r := rand.New(rand.NewPCG(seed, 2))
		p := randomPlan(r, 2+r.IntN(5))
		slots := 1 + r.IntN(3)
		rep := run(t, p, slots)
		best := optimum(p.Items, slots)
		if len(rep.Left) > 0 {
			continue
		}
		bound := time.Duration(rep.Bound.Finish)
		if bound > best {
			t.Errorf("seed %d: bound %s, and it can be done in %s", seed, bound, best)
		}
		for _, o := range append([]simulate.Outcome{rep.Prediction}, rep.Others...) {
			if time.Duration(o.Finish) < best {
				t.Errorf("seed %d: %v, and the best is %s", seed, o, best)
			}
		}
		if bound == best {
			met++
		}
	}
	t.Logf("the bound is the best schedule in %d of %d plans", met, plans)
	if met < plans/2 {
		t.Errorf("the bound is the best schedule in %d of %d plans only", met, plans)
	}
}

// optimum tries all orders. It places items one after the other at the earliest time at which
// they fit.
func optimum(items []simulate.Item, slots int) time.Duration {
	best := time.Duration(1 << 62)
	var put func(done []placed)
	put = func(done []placed) {
		if len(done) == len(items) {
			var last time.Duration
			for _, d := range done {
				last = max(last, d.end)
			}
			best = min(best, last)
			return
		}
		for _, it := range items {
			if at, ok := earliest(it, done, slots); ok {
				put(append(slices.Clone(done), placed{it, at, at + it.Duration}))
			}
		}
	}
	put(nil)
	return best
}

// A placed is an item in a schedule.
type placed struct {
	item       simulate.Item
	start, end time.Duration
}

// earliest returns the first time at which an item fits. It returns false if the item is already
// placed or a predecessor is not.
func earliest(it simulate.Item, done []placed, slots int) (time.Duration, bool) {
	begin, open := time.Duration(0), len(it.After)
	times := []time.Duration{0}
	for _, d := range done {
		if d.item.Name == it.Name {
			return 0, false
		}
		if slices.Contains(it.After, d.item.Name) {
			begin = max(begin, d.end)
			open--
		}
		times = append(times, d.end)
	}
	if open > 0 {
		return 0, false
	}
	slices.Sort(times)
	for _, at := range times {
		if at >= begin && fits(it, at, done, slots) {
			return at, true
		}
	}
	return 0, false
}

func fits(it simulate.Item, at time.Duration, done []placed, slots int) bool {
	for _, d := range done {
		if d.start >= at+it.Duration || d.end <= at {
			continue
		}
		if conflict(it, d.item) {
			return false
		}
	}
	// The largest number of running items occurs at some start.
	for _, moment := range append([]placed{{start: at}}, done...) {
		if moment.start < at || moment.start >= at+it.Duration {
			continue
		}
		running := 0
		for _, d := range done {
			if d.start <= moment.start && moment.start < d.end {
				running++
			}
		}
		if running >= slots {
			return false
		}
	}
	return true
}
