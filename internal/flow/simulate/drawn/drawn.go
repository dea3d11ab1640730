package drawn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"lockkeeper/internal/flow/simulate"
)

// The numbers of a plan.
const (
	Modules     = 17
	Controllers = 120
	Screens     = 600
)

// Plan draws a plan. Screens are analyzed first: each reads its controller, a model of its
// module and, one in five, a file that all modules share, and writes notes of its own. A controller
// is changed once its screens are analyzed. The change reads their notes and writes the controller
// and the views. One change in four also writes a model of its module. The share of changes that
// write a file that all modules share is given.
func Plan(seed uint64, share float64) *simulate.Plan {
	r := rand.New(rand.NewPCG(seed, 0))
	shared := []string{"app/views/layouts/application.html.erb", "app/controllers/concerns/authentication.rb"}
	screens := make([]int, Controllers)
	for i := range Screens {
		if i < Controllers { // each controller has at least one screen
			screens[i]++
		} else {
			screens[r.IntN(Controllers)]++
		}
	}
	plan := &simulate.Plan{}
	for c := range Controllers {
		module := fmt.Sprintf("m%02d", c%Modules)
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
		if r.Float64() < share {
			change.Writes = append(change.Writes, shared[r.IntN(2)])
		}
		plan.Items = append(plan.Items, change)
	}
	return plan
}

// lognormal draws a duration around a median, between least and most.
func lognormal(r *rand.Rand, median time.Duration, sigma float64, least, most time.Duration) time.Duration {
	d := time.Duration(float64(median) * math.Exp(sigma*r.NormFloat64()))
	return min(max(d, least), most).Round(time.Millisecond)
}
