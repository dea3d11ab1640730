package simulate_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"lockkeeper/internal/flow/simulate"
	"lockkeeper/internal/flow/simulate/drawn"
)

var seed = flag.Uint64("seed", rand.Uint64N(1<<40), "first seed of the drawn plans")

// The order of the queue, the longest chain of work first within a rank, is close to the lower
// bound on plans that are drawn for each run of the test. No random order is much better.
//
// shows: SW-27 SW-31
func TestOrderIsNearTheBound(t *testing.T) {
	const plans, most = 20, 1.015
	for _, share := range []float64{0.05, 0.3} {
		t.Run(fmt.Sprintf("%.0f percent write a shared file", 100*share), func(t *testing.T) {
			var sum float64
			for n := range uint64(plans) {
				rep, err := simulate.Run(t.Context(), drawn.Plan(*seed+n, share), simulate.Options{Slots: 12, Orders: 100})
				if err != nil || len(rep.Left) > 0 {
					t.Fatalf("seed %d: %v, left %v", *seed+n, err, rep.Left)
				}
				ours := time.Duration(rep.Prediction.Finish)
				bound, best := ours.Seconds()/time.Duration(rep.Bound.Finish).Seconds(), ours.Seconds()/other(t, rep, simulate.Random).Seconds()
				sum += bound
				t.Logf("seed %d: %.4f of the bound, %.4f of the best random order", *seed+n, bound, best)
				if best > 1.005 {
					t.Errorf("seed %d: %.4f of the best of 100 random orders", *seed+n, best)
				}
			}
			t.Logf("mean %.4f of the bound", sum/plans)
			if sum/plans > most {
				t.Errorf("from seed %d: %.4f of the lower bound on average", *seed, sum/plans)
			}
		})
	}
}
