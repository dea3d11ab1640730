package run_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/run"
)

// The CI phase runs all its commands. While one fails, an agent fixes the files, up to the limit
// of this phase. The batch keeps its locks from its first agent to its end, and lands only when
// all commands pass.
//
// shows: PL-29
func TestCIFixes(t *testing.T) {
	const file = "app/models/one.rb"
	locks := []lockkeeper.Lock{{Target: lockkeeper.Target{Path: file, Kind: lockkeeper.File}, Mode: lockkeeper.Write}}
	for name, c := range map[string]struct {
		lint         string // the second command
		red, fixes   int
		status, last string // the last is the content of the file
	}{
		"passes":        {"true", 0, 0, flow.Complete, "one\n"},
		"fixed in time": {"grep -q second " + file, 2, 2, flow.Complete, "second\n"},
		"fixed late":    {"grep -q third " + file, 3, 2, flow.Failed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "memory", "tasks")
			s.opt.Limits.Fixes, s.opt.Limits.FixesIn = 5, map[string]int{"ci": 2}
			s.opt.Checks.Commands = map[string][]string{"ci": {"grep -q . " + file, c.lint}}
			s.tasks("tasks: [{name: one, prompt: Do it., writes: [" + file + "], tests: ['true']}]\n")
			var fixes string
			for _, content := range []string{"first", "second", "third"} {
				fixes += `
- match: '^# fix_ci .*one'
  times: 1
  steps: [{write: {path: ` + file + `, content: "` + content + `\n"}}]
  result: {structured: {summary: fixed}}`
			}
			s.play(fixes + oneScript)
			steals := func() error {
				g, err := s.locks.TryAcquire(t.Context(), lockkeeper.Request{Holder: "otter", Locks: locks})
				if err == nil {
					_, err = s.locks.Release(t.Context(), g.ID, g.Token)
				}
				return err
			}
			tell := s.opt.Tell
			s.opt.Tell = func(n run.News) {
				tell(n)
				if n.Phase != "ci" && n.Phase != "fix_ci" || n.Kind == run.NewsFailed { // a failed batch has ended
					return
				}
				var blocked *lockkeeper.BlockedError
				if err := steals(); !errors.As(err, &blocked) {
					t.Errorf("%s %q: the batch holds no lock: %v", n.Kind, n.Text, err)
				}
			}
			b := s.batch(s.run("all"), tasks, "one")
			if b.Status != c.status || c.status == flow.Failed && !strings.Contains(b.Error, "after 2 fixes") {
				t.Errorf("%+v", b)
			}
			s.holds(file, c.last)
			if red := s.news(run.NewsRed); len(red) != c.red {
				t.Errorf("red: %+v", red)
			}
			fixing := slices.DeleteFunc(s.news(run.NewsStarted), func(n run.News) bool { return !strings.HasPrefix(n.Text, "fix ") })
			if len(fixing) != c.fixes {
				t.Errorf("fixes: %+v", fixing)
			}
			if err := steals(); err != nil {
				t.Errorf("the batch ended and keeps its lock: %v", err)
			}
		})
	}
}
