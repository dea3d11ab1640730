package conduct

import (
	"path/filepath"
	"strings"
	"time"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/run"
)

// TaskTimes returns how long each task took in earlier runs of the codebase at root, by name: the time of its agents
// and checks for each time that it was applied.
func TaskTimes(root string) (map[string]time.Duration, error) {
	f := flow.Tasks()
	all, err := run.OpenJournal(filepath.Join(root, filepath.FromSlash(callsDir))).All(f.Name)
	if err != nil {
		return nil, err
	}
	times, applied := map[string]time.Duration{}, map[string]int{}
	for _, e := range all {
		name, isTask := strings.CutPrefix(e.Work, f.OneUnit+"/")
		switch {
		case !isTask || e.Ended.Before(e.Began):
			continue
		case e.Phase == "apply":
			applied[name]++
		}
		times[name] += e.Ended.Sub(e.Began)
	}
	for name := range times {
		times[name] /= time.Duration(max(1, applied[name]))
	}
	return times, nil
}
