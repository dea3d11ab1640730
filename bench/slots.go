package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// These constants describe a run that is large enough for its slots to be full for ten agents in
// each.
const (
	fullFiles = 7_100
	fullTasks = 10 * runSlots
	leastBusy = runSlots - 1
)

// pipelineSlots runs tasks that are independent of each other on a large tree, and measures how many
// agents work.
func pipelineSlots(b *bench) []row {
	w := newWorks(b, "slots")
	layeredFiles(w.root, fullFiles)
	var tasks, plan strings.Builder
	tasks.WriteString("tasks:\n")
	plan.WriteString("items:\n")
	for i := range fullTasks {
		fmt.Fprintf(&tasks, "  - {name: t%d, prompt: Do it., writes: [file%d.rb]}\n", i, i)
		fmt.Fprintf(&plan, "  - {name: t%d, writes: [file%d.rb], duration: %dms}\n", i, i, runPause.Milliseconds())
	}
	script := fmt.Sprintf("calls:\n- match: '^# task \\S*t(\\d+)'\n  steps: [{sleep: %s}, {write: {path: 'file$1.rb', content: \"$1\\n\"}}]\n  result: {structured: {summary: done}}\n", runPause)
	writeFile(filepath.Join(w.root, "tasks.yaml"), []byte(tasks.String()))
	writeFile(filepath.Join(w.dir, "plan.yaml"), []byte(plan.String()))
	w.prepare([]byte(script), "run: {verify: off}\n")
	b.letRest()
	said, _ := w.call("simulate", filepath.Join(w.dir, "plan.yaml"), "--slots", fmt.Sprint(runSlots), "--json")
	var forecast struct {
		Prediction struct {
			Finish float64 `json:"finish_seconds"`
		} `json:"prediction"`
	}
	check(json.Unmarshal([]byte(said), &forecast))
	_, took := w.call("run", "--plan", "tasks.yaml", "--slots", fmt.Sprint(runSlots))
	busy := float64(fullTasks) * runPause.Seconds() / w.spanOfCalls(fullTasks).Seconds()
	how := fmt.Sprintf("The whole command runs %d tasks on a tree of %d files, with a workspace, a sandbox and a landing for each.", fullTasks, fullFiles)
	return []row{
		row{What: fmt.Sprintf("Agents at work, of %d", runSlots), Ours: fmt.Sprintf("%.1f", busy),
			How: how + " The time for which all agents sleep is divided by the time from the start of the first to the end of the last, as recorded.",
		}.atLeast(busy, leastBusy, "%.1f"),
		row{What: fmt.Sprintf("A run of %d tasks, agents of %s, to what simulate predicts", fullTasks, runPause),
			Ours: took.Round(100 * time.Millisecond).String(), Peer: fmt.Sprintf("%.1fs", forecast.Prediction.Finish), How: how + " The copy of the tree is part of the run.",
		}.atMost(took.Seconds()/forecast.Prediction.Finish, 1.1, "%.2f×"),
	}
}

// spanOfCalls returns the time from the start of the first call to the end of the last, of a number of
// calls.
func (w *works) spanOfCalls(calls int) time.Duration {
	list := w.calls()
	if len(list) != calls {
		check(fmt.Errorf("%d calls are recorded, not %d", len(list), calls))
	}
	var first, last time.Time
	for _, c := range list {
		if first.IsZero() || c.Began.Before(first) {
			first = c.Began
		}
		if end := c.Began.Add(c.Took); end.After(last) {
			last = end
		}
	}
	return last.Sub(first)
}
