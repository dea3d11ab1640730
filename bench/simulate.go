package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"lockkeeper/internal/flow/simulate"
)

// The simulated work is a large Rails application, with all of its screens and controllers in one
// plan.
const (
	simulatedModules     = 17
	simulatedControllers = 120
	simulatedScreens     = 600
	simulatedSlots       = 12
	simulatedSeeds       = 10
	simulatedOrders      = 1_000
)

// lognormal draws a duration around a median, between least and most.
func lognormal(r *rand.Rand, median time.Duration, sigma float64, least, most time.Duration) time.Duration {
	d := time.Duration(float64(median) * math.Exp(sigma*r.NormFloat64()))
	return min(max(d, least), most).Round(time.Millisecond)
}

// bigPlan draws a plan. Screens are analyzed first: each reads its controller, a model of its
// module and, one in five, a file that all modules share, and writes notes of its own. A controller
// is changed once its screens are analyzed. The change reads their notes and writes the controller
// and the views. One change in four also writes a model of its module, and one in twenty a file that
// all modules share.
func bigPlan(seed uint64) *simulate.Plan {
	r := rand.New(rand.NewPCG(seed, 0))
	shared := []string{"app/views/layouts/application.html.erb", "app/controllers/concerns/authentication.rb"}
	screens := make([]int, simulatedControllers)
	for i := range simulatedScreens {
		if i < simulatedControllers { // each controller has at least one screen
			screens[i]++
		} else {
			screens[r.IntN(simulatedControllers)]++
		}
	}
	plan := &simulate.Plan{}
	for c := range simulatedControllers {
		module := fmt.Sprintf("m%02d", c%simulatedModules)
		name := fmt.Sprintf("%s/c%03d", module, c)
		file := "app/controllers/" + name + "_controller.rb"
		model := func() string { return fmt.Sprintf("app/models/%s/model_%d.rb", module, r.IntN(5)) }
		change := simulate.Item{Name: name, Phase: "apply", Project: module, Unit: "controller",
			Duration: lognormal(r, 7*time.Minute, 0.4, 3*time.Minute, 15*time.Minute),
			Reads:    []string{"docs/" + name + "/"}, Writes: []string{file}}
		for s := range screens[c] {
			screen := simulate.Item{Name: fmt.Sprintf("%s/s%d", name, s), Phase: "analyze", Project: module, Unit: "screen",
				Duration: lognormal(r, 150*time.Second, 0.5, time.Minute, 6*time.Minute),
				Reads:    []string{file, model()}, Writes: []string{fmt.Sprintf("docs/%s/s%d.md", name, s)}}
			if r.IntN(5) == 0 {
				screen.Reads = append(screen.Reads, shared[r.IntN(2)])
			}
			plan.Items = append(plan.Items, screen)
			change.After = append(change.After, screen.Name)
			change.Writes = append(change.Writes, fmt.Sprintf("app/views/%s/s%d.html.erb", name, s))
		}
		if r.IntN(4) == 0 {
			change.Writes = append(change.Writes, model())
		}
		if r.IntN(20) == 0 {
			change.Writes = append(change.Writes, shared[r.IntN(2)])
		}
		plan.Items = append(plan.Items, change)
	}
	return plan
}

// simulateOrder compares the order of the scheduler with the best of many random orders, and
// with other ways to schedule. Nothing is timed: a plan has one prediction.
func simulateOrder(b *bench) []row {
	how := fmt.Sprintf("The scheduler itself, with a clock of its own, runs a plan of %d modules, %d controllers and %d screens on %d slots. "+
		"The peer is the best of %d schedules that skip blocked items, each in a random order. For comparison: a queue in which a "+
		"blocked first item blocks all others, and a loop that checks the queue by priority every 0.5 s.",
		simulatedModules, simulatedControllers, simulatedScreens, simulatedSlots, simulatedOrders)
	var rows []row
	for seed := uint64(1); seed <= simulatedSeeds; seed++ {
		rep := get(simulate.Run(b.ctx, bigPlan(seed), simulate.Options{Slots: simulatedSlots, Orders: simulatedOrders}))
		if len(rep.Left) > 0 {
			check(fmt.Errorf("seed %d: %s is never done: %s", seed, rep.Left[0].Name, rep.Left[0].Reason))
		}
		finish := map[string]time.Duration{}
		for _, o := range rep.Others {
			finish[o.Scheduler] = time.Duration(o.Finish)
		}
		ours, best := time.Duration(rep.Prediction.Finish), finish[simulate.Random]
		rows = append(rows, row{
			What: fmt.Sprintf("Simulated: %d screens on %d slots, seed %d", simulatedScreens, simulatedSlots, seed),
			Ours: seconds(ours), Peer: fmt.Sprintf("%s (in order %s, polling %s)", seconds(best), seconds(finish[simulate.InOrder]), seconds(finish[simulate.Polling])),
			How: how,
		}.atMost(100*(float64(ours)/float64(best)-1), 5, "%+.1f %%"))
		how = fmt.Sprintf("The same with a plan drawn with seed %d.", seed+1)
	}
	return rows
}

func seconds(d time.Duration) string { return d.Round(time.Second).String() }
