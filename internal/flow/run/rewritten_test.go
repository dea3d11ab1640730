package run_test

import (
	"strings"
	"testing"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/run"
)

// A person works on another branch while a batch is verified, comes back, and merges. Landing
// waits meanwhile. Then files that the batch was tested with have changed, although it declared
// none of them. It is tested again, fails, and does not land.
//
// shows: PL-28 PL-30
func TestRewrittenByGit(t *testing.T) {
	s := newScene(t, "SQLite", "tasks")
	s.opt.Limits.Fixes = 0
	write(t, s.root, "app/models/words.rb", "greet\n")
	s.withRepo()
	main := strings.TrimSpace(s.git("branch", "--show-current"))
	s.tasks("tasks: [{name: one, prompt: Do it., writes: [app/models/one.rb], tests: ['grep greet app/models/words.rb']}]\n")
	s.play(oneScript)
	told := s.opt.Tell
	s.opt.Tell = func(n run.News) {
		told(n)
		switch {
		case n.Kind == run.NewsStarted && n.Phase == "verify":
			s.git("checkout", "-qb", "other")
			write(t, s.root, "app/models/words.rb", "welcome\n")
			s.git("commit", "-qam", "rename")
		case n.Kind == run.NewsPaused:
			s.git("checkout", "-q", main)
			s.git("merge", "-q", "other")
		}
	}
	if b := s.batch(s.run("all"), tasks, "one"); b.Status != flow.Failed || !strings.Contains(b.Error, "grep greet") {
		t.Errorf("%+v", b)
	}
	if len(s.news(run.NewsPaused)) != 1 || len(s.news(run.NewsResumed)) != 1 {
		t.Errorf("paused %+v, resumed %+v", s.news(run.NewsPaused), s.news(run.NewsResumed))
	}
	if again := s.news(run.NewsAgain); len(again) != 1 || !strings.Contains(again[0].Text, "app/models/words.rb") {
		t.Errorf("tested again: %+v", again)
	}
	s.holds("app/models/one.rb", "")
	s.shelved("app/models/one.rb")
}
