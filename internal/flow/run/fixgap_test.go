package run_test

import (
	"strings"
	"testing"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
)

// If an agent changes a file beyond its grant during a fix and the batch still fails, the change
// waits for a person. It is reported once.
//
// shows: SW-76 PL-44
func TestGapsOfFailedFixes(t *testing.T) {
	s := newScene(t, "SQLite", "tasks")
	s.opt.Limits.Fixes = 1
	s.tasks("tasks: [{name: one, prompt: Do it., writes: [app/models/one.rb], tests: ['false']}]\n")
	s.play(strings.Replace(oneScript, `content: "fixed\n"}}`, `content: "fixed\n"}}, {write: {path: app/models/other.rb, content: "x\n"}}`, 1))
	for range 2 {
		out := s.run("all")
		if b := s.batch(out, tasks, "one"); b.Status != flow.Failed {
			t.Errorf("%+v", b)
		}
		if len(out.Waiting) != 1 || out.Waiting[0].Ref.Kind != progress.GapKind {
			t.Errorf("waiting %+v", out.Waiting)
		}
	}
}
