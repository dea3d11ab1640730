package run_test

import (
	"strings"
	"testing"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
)

// What an agent changed beyond its grant while it fixed something waits for a person also
// when the batch fails all the same, and is told once.
//
// shows: SW-76 PL-44
func TestGapsOfFixesInVain(t *testing.T) {
	s := newScene(t, "SQLite", "tasks")
	s.opt.Limits.Fixes = 1
	s.tasks("tasks: [{name: one, prompt: Do it., writes: [app/models/one.rb], tests: ['false']}]\n")
	s.play(strings.Replace(oneScript, `content: "mended\n"}}`, `content: "mended\n"}}, {write: {path: app/models/other.rb, content: "x\n"}}`, 1))
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
