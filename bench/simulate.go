package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"lockkeeper/internal/flow/simulate"
	"lockkeeper/internal/flow/simulate/drawn"
)

const (
	simulatedSlots  = 12
	simulatedSeeds  = 10
	simulatedOrders = 100
)

// simulateOrder compares the order of the scheduler with the lower bound and with the best of many
// random orders, on plans that are drawn for each run. Nothing is timed: a plan has one prediction.
func simulateOrder(b *bench) []row {
	var rows []row
	for _, kind := range []struct {
		name  string
		share float64
	}{{"", 0.05}, {", 30 % of the changes write a shared file", 0.3}} {
		first := rand.Uint64N(1 << 40)
		var mean, worst, random float64
		for seed := first; seed < first+simulatedSeeds; seed++ {
			rep := get(simulate.Run(b.ctx, drawn.Plan(seed, kind.share), simulate.Options{Slots: simulatedSlots, Orders: simulatedOrders}))
			if len(rep.Left) > 0 {
				check(fmt.Errorf("seed %d: %s is never done: %s", seed, rep.Left[0].Name, rep.Left[0].Reason))
			}
			ours := time.Duration(rep.Prediction.Finish).Seconds()
			for _, o := range rep.Others {
				if o.Scheduler == simulate.Random {
					best := time.Duration(o.Finish).Seconds()
					worst = max(worst, ours/best)
					random += best / time.Duration(rep.Bound.Finish).Seconds() / simulatedSeeds
				}
			}
			mean += ours / time.Duration(rep.Bound.Finish).Seconds() / simulatedSeeds
		}
		what := fmt.Sprintf("Simulated: %d screens on %d slots%s", drawn.Screens, simulatedSlots, kind.name)
		how := fmt.Sprintf("The scheduler itself, with a clock of its own, runs %d plans of %d modules, %d controllers and %d screens, drawn from seed %d on. "+
			"A plan's finish is divided by its lower bound. The peer is the best of %d schedules that skip blocked items, each in a random order.",
			simulatedSeeds, drawn.Modules, drawn.Controllers, drawn.Screens, first, simulatedOrders)
		rows = append(rows,
			row{What: what + ", to the lower bound", Ours: fmt.Sprintf("%.4f", mean), Peer: fmt.Sprintf("%.4f", random), How: how}.atMost(mean, 1.015, "%.4f×"),
			row{What: what + ", to the best random order", Ours: fmt.Sprintf("%.4f", worst), Peer: "1", How: "The largest ratio of one of these plans."}.atMost(worst, 1.005, "%.4f×"))
	}
	return rows
}
