package flows

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/simulate"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/jobs"
	"lockkeeper/internal/surface/cli/term"
)

// ordersTried is how many random orders a prediction is compared with.
const ordersTried = 100

func (p *program) simulateCommand() *cobra.Command {
	var slots int
	var machines []int
	cmd := &cobra.Command{
		Use:   "simulate PLAN.yaml",
		Short: "Predict how long a plan of work takes and what it waits for",
		Long: `Predict how a plan of work will run, before you pay for agents. The scheduler works
through the plan on a virtual clock. The answer is when everything is done, how far that
is above the lower bound, which files items wait for, and how other schedulers compare.
Nothing is locked or changed, and it needs no lockkeeper init. The file - is standard
input.

The plan is the file that lockkeeper run --plan takes. A task can say how long it takes;
otherwise its time in earlier runs counts, or what tasks usually take, or 5m:

  tasks:
    - name: rate-limit
      prompt: Limit sign-ins to five a minute.
      writes: [src/session.py]
      duration: 8m
    - name: docs
      prompt: Describe the limit.
      writes: [docs/sessions.md]
      after: [rate-limit]

A plan of other work lists items, which have only name, duration, reads, writes, after,
phase, project and unit: see docs/simulate.md.`,
		Example: `  lockkeeper simulate tasks.yaml --slots 4
  lockkeeper simulate tasks.yaml --machines 4,4,8
  lockkeeper simulate plan.yaml --slots 12 --json | jq .prediction`,
		Args: command.Exactly(1, "the file of one plan"),
		RunE: func(cmd *cobra.Command, args []string) error {
			conf, err := config.Load(p.configFile(), p.Lookup, nil)
			if err != nil {
				return err
			}
			if !cmd.Flags().Changed("slots") {
				slots = conf.MaxClaudeConcurrency
			}
			tests := conf.MaxTestConcurrency * max(1, len(machines))
			if len(machines) > 0 {
				if cmd.Flags().Changed("slots") {
					return &lockkeeper.InputError{Field: "machines", Value: fmt.Sprint(machines), Reason: "--slots is given as well", Next: "give the slots of each machine: --machines 4,4,8"}
				}
				if slots, err = slotsOf(machines); err != nil {
					return err
				}
			}
			return p.simulate(cmd.Context(), args[0], conf, simulate.Options{Slots: slots, Tests: tests, Orders: ordersTried, Scheduler: conduct.SchedulerOptions(conf)})
		},
	}
	cmd.Flags().IntVar(&slots, "slots", 0, "the `number` of agents at once (default: max_claude_concurrency)")
	cmd.Flags().IntSliceVar(&machines, "machines", nil, "the number of agents at once of each machine of a run, such as `4,4,8`; each has max_test_concurrency tests")
	return cmd
}

// slotsOf returns the slots of all machines of a run.
func slotsOf(machines []int) (slots int, err error) {
	for _, n := range machines {
		if n < 1 || n > jobs.MostSlots {
			return 0, &lockkeeper.InputError{Field: "machines", Value: fmt.Sprint(n), Reason: fmt.Sprintf("out of range, must be 1 to %d", jobs.MostSlots), Next: "give the number of agents of each machine: --machines 4,4,8"}
		}
		slots += n
	}
	return slots, nil
}

// configFile returns the configuration file of the nearest directory upwards that has one, with
// or without init.
func (p *program) configFile() string {
	for dir := p.Base(); ; dir = filepath.Dir(dir) {
		file := filepath.Join(dir, config.FileName)
		if _, err := os.Lstat(file); err == nil || dir == filepath.Dir(dir) {
			return file
		}
	}
}

func (p *program) simulate(ctx context.Context, file string, conf *config.Config, opt simulate.Options) error {
	times, err := p.times(conf)
	if err != nil {
		return err
	}
	var plan *simulate.Plan
	if file == "-" {
		plan, err = simulate.ReadPlanFrom(p.In, "standard input", times)
	} else {
		plan, err = simulate.ReadPlan(p.Path(file), file, times)
	}
	if err != nil {
		return err
	}
	rep, err := simulate.Run(ctx, plan, opt)
	if err != nil {
		return err
	}
	return p.Show(rep, func() {
		p.showPrediction(rep)
		p.showWaits(rep)
	})
}

// times returns what is known about tasks from earlier runs of this codebase. Before init nothing is known.
func (p *program) times(conf *config.Config) (simulate.Times, error) {
	root, err := project.FindRoot(p.Settings())
	if err != nil && lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
		return simulate.Times{}, err
	}
	return conduct.TaskTimes(root, conf)
}

// showPrediction prints when a plan is done, and how good that is.
func (p *program) showPrediction(rep *simulate.Report) {
	paint := p.Painter(p.Out)
	p.showLeft(rep)
	fmt.Fprintf(p.Out, "%s: done after %s with %s, which are %.0f %% in use\n", term.Counted(rep.Items, "item"),
		paint(term.Bold, took(rep.Prediction.Finish)), term.Counted(rep.Slots, "slot"), rep.Prediction.Use)
	if rep.Durations != nil {
		var parts []string
		for _, source := range []simulate.Source{simulate.Given, simulate.Learned, simulate.Assumed} {
			if n := rep.Durations[source]; n > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", n, source))
			}
		}
		text := strings.Join(parts, ", ")
		if rep.Durations[simulate.Assumed] > 0 {
			text += " (" + took(rep.Assumed) + ")"
		}
		fmt.Fprintln(p.Out, "durations: "+text)
	}
	fmt.Fprintf(p.Out, "lower bound: %s, %s; the prediction is %.1f %% above it\n", took(rep.Bound.Finish), boundReason(rep), rep.Prediction.Above)
	fmt.Fprintln(p.Out, paint(term.Bold, "other schedulers:"))
	t := &term.Table{Heads: []string{"SCHEDULER", "DONE AFTER", "ABOVE BOUND", "SLOTS IN USE"}}
	for _, o := range append([]simulate.Outcome{rep.Prediction}, rep.Others...) {
		t.Add(schedulerName(o.Scheduler), took(o.Finish), fmt.Sprintf("%.1f %%", o.Above), fmt.Sprintf("%.0f %%", o.Use))
	}
	t.Print(p.Out, paint)
}

// rowsShown limits the rows of a list. With --json, all rows are shown.
const rowsShown = 10

// showLeft prints the items that never complete.
func (p *program) showLeft(rep *simulate.Report) {
	n := len(rep.Left)
	if n == 0 {
		return
	}
	fmt.Fprintln(p.Out, p.Painter(p.Out)(term.Yellow, term.Plural(n, "1 item is", fmt.Sprint(n, " items are"))+" never done; the rest of this report excludes "+term.Plural(n, "it", "them")+":"))
	for _, l := range rep.Left[:min(rowsShown, n)] {
		fmt.Fprintf(p.Out, "  %s: %s", term.Clean(l.Name), l.Reason)
		if len(l.Paths) > 0 {
			fmt.Fprintf(p.Out, " (%s)", term.Clean(strings.Join(l.Paths, ", ")))
		}
		fmt.Fprintln(p.Out)
	}
	p.andMore(n)
}

func (p *program) andMore(n int) {
	if n > rowsShown {
		fmt.Fprintf(p.Out, "  and %d more\n", n-rowsShown)
	}
}

func boundReason(rep *simulate.Report) string {
	b := rep.Bound
	switch b.By {
	case "chain":
		return term.Plural(b.Items, "the longest item", fmt.Sprintf("a chain of %d items that wait for each other", b.Items))
	case "file":
		return fmt.Sprintf("%s that cannot share %s", term.Counted(b.Items, "item"), term.Clean(b.Path))
	}
	return "the work over all slots"
}

func schedulerName(scheduler string) string {
	switch scheduler {
	case simulate.InOrder:
		return "in order: no item overtakes another"
	case simulate.Polling:
		return "a loop that polls every 0.5 s"
	case simulate.Random:
		return fmt.Sprintf("the best of %d random orders", ordersTried)
	}
	return scheduler
}

// showWaits prints the files that items wait for.
func (p *program) showWaits(rep *simulate.Report) {
	paint := p.Painter(p.Out)
	if len(rep.Files) == 0 {
		fmt.Fprintln(p.Out, "no item waits for a file")
		return
	}
	fmt.Fprintln(p.Out, paint(term.Bold, "files that cost the most waiting:"))
	tiered := rep.Durations == nil // tasks are in no controller and no module
	files := &term.Table{Heads: []string{"PATH", "BLOCKED", "ITEMS"}}
	if tiered {
		files.Heads = []string{"PATH", "TIER", "BLOCKED", "ITEMS"}
	}
	for _, f := range rep.Files[:min(rowsShown, len(rep.Files))] {
		cells := []string{term.Clean(f.Path), string(f.Tier), took(f.Blocked), fmt.Sprint(f.Items)}
		if !tiered {
			cells = slices.Delete(cells, 1, 2)
		}
		files.Add(cells...)
	}
	files.Print(p.Out, paint)
	p.andMore(len(rep.Files))
	if !tiered {
		return
	}
	fmt.Fprintln(p.Out, paint(term.Bold, "by tier:"))
	tiers := &term.Table{Heads: []string{"TIER", "PATHS", "BLOCKED", "ITEMS"}}
	for _, t := range rep.Tiers {
		tiers.Add(string(t.Tier), fmt.Sprint(t.Paths), took(t.Blocked), fmt.Sprint(t.Items))
	}
	tiers.Print(p.Out, paint)
}

func took(s simulate.Span) string { return term.Span(time.Duration(s)) }
