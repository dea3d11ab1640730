package run_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
	"lockkeeper/store"
)

// inOneWay returns a scene with four tasks. The tests of each fail in the same way, until a file
// exists that no task writes.
func inOneWay(t *testing.T, st string) *scene {
	s := newScene(t, st, "tasks")
	plan, script := "tasks:\n", ""
	for _, name := range []string{"ta", "tb", "tc", "td"} {
		plan += fmt.Sprintf("  - {name: %s, prompt: Do it., writes: [app/models/%s.rb]}\n", name, name)
		script += fmt.Sprintf(`
- match: '^# (task|fix_tests) .*/%s'
  steps: [{write: {path: app/models/%s.rb, content: "%s\n"}}]
  result: {structured: {summary: made it}}
`, name, name, name)
	}
	s.tasks(plan)
	s.play(script)
	s.opt.Limits.Fixes = 1
	repaired := filepath.Join(filepath.Dir(s.script), "repaired")
	s.opt.Checks = run.Checks{Test: "cat app/models/t?.rb; if ! test -e " + repaired + "; then " + goFails("TestShared") + "; exit 1; fi"}
	return s
}

func (s *scene) repair() { write(s.t, filepath.Dir(s.script), "repaired", "") }

// question returns the open question about a failure.
func question(t *testing.T, out *run.Outcome) progress.Decision {
	t.Helper()
	if len(out.Waiting) != 1 || out.Waiting[0].Ref.Kind != progress.FailureKind {
		t.Fatalf("%+v", out.Waiting)
	}
	return out.Waiting[0]
}

func (s *scene) answer(ref progress.Ref, answer string) {
	s.t.Helper()
	must(s.t, s.opt.Progress.AnswerFailure(context.Background(), ref.Unit, ref.Failure, answer, "ada"))
	must(s.t, s.opt.Store.Update(context.Background(), func(tx store.Tx) error {
		_, err := tx.Append(lockkeeper.Event{At: tx.Now().Wall, Kind: lockkeeper.EventDecided, Actor: s.opt.Actor, Reason: ref.String() + " " + answer})
		return err
	}))
}

// count counts the batches with one of these statuses.
func count(out *run.Outcome, statuses ...string) (n int) {
	for _, u := range out.State.Units {
		for _, b := range u.Batches {
			if slices.Contains(statuses, b.Status) {
				n++
			}
		}
	}
	return n
}

// The third batch that fails in the same way is not fixed. The run pauses, and asks again when it is
// resumed, until a person answers. The batches stay as they are.
//
// shows: PL-28
func TestSameFailureIsAskedAbout(t *testing.T) {
	for _, st := range []string{"memory", "SQLite"} {
		t.Run(st, func(t *testing.T) {
			s := inOneWay(t, st)
			out := s.run("all")
			asked := question(t, out)
			// The first two batches fail, or wait too if they fail again only after the third.
			if got := count(out, flow.Failed, flow.Queued); got != 4 || count(out, flow.Queued) < 2 || s.fixes() != 2 || len(s.news(run.NewsPaused)) != 1 {
				t.Errorf("%+v, %d fixes, %+v", out.State.Units, s.fixes(), s.news(run.NewsPaused))
			}
			shown := fmt.Sprint(asked.Facts)
			for _, want := range []string{"m.TestShared", tasks + "/t", "exit 1", "FAIL"} {
				if !strings.Contains(shown, want) {
					t.Errorf("%q is not in %s", want, shown)
				}
			}
			calls := out.State.Spent.Calls
			again := s.run("all")
			if question(t, again).Ref != asked.Ref || again.State.Spent.Calls != calls {
				t.Errorf("a resumed run: %+v", again)
			}
			s.answer(asked.Ref, progress.Without)
			out = s.run("all")
			if count(out, flow.Failed) != 4 || s.fixes() != 2 || len(out.Waiting) != 0 {
				t.Errorf("without: %+v, %d fixes, %+v", out.State.Units, s.fixes(), out.Waiting)
			}
			s.repair()
			s.answer(asked.Ref, progress.Again)
			out = s.conduct(request{Auto: &progress.Policy{All: true}, Retry: true})
			if count(out, flow.Complete) != 4 || s.fixes() != 2 {
				t.Errorf("again: %+v, %d fixes", out.State.Units, s.fixes())
			}
		})
	}
}

// A run that waits for answers continues with the answer, or stops.
func TestAnswerDuringARun(t *testing.T) {
	for _, answer := range []string{progress.Again, progress.Stop} {
		s := inOneWay(t, "memory")
		tell, asked := s.opt.Tell, make(chan struct{})
		once := sync.OnceFunc(func() { close(asked) })
		s.opt.Wait = true
		s.opt.Tell = func(n run.News) {
			tell(n)
			if n.Kind == run.NewsPaused {
				once()
			}
		}
		go func() {
			<-asked
			if answer == progress.Again {
				s.repair()
			}
			open, err := s.opt.Progress.Waiting(context.Background(), []string{tasks})
			if err != nil || len(open) != 1 {
				t.Errorf("%v, %v", open, err)
				return
			}
			s.answer(open[0].Ref, answer)
		}()
		out := s.run("all")
		if stopped := answer == progress.Stop; out.Stopped != stopped || len(out.Waiting) != 0 || (count(out, flow.Queued) > 0) != stopped || (count(out, flow.Complete) > 0) == stopped {
			t.Errorf("%s: %+v", answer, out.State.Units)
		}
	}
}

// Failures that agents repair are no common failure, however many batches had them.
func TestRepairedFailuresAreNotCommon(t *testing.T) {
	s := inOneWay(t, "memory")
	s.opt.Checks.Test = "for f in app/models/t?.rb; do test -e $f && ! grep -q fixed $f && { " + goFails("TestShared") + "; exit 1; }; done; true"
	script := ""
	for _, name := range []string{"ta", "tb", "tc", "td"} {
		for match, content := range map[string]string{"task": "new", "fix_tests": "fixed"} {
			script += fmt.Sprintf("\n- match: '^# %s .*/%s'\n  steps: [{write: {path: app/models/%s.rb, content: \"%s\\n\"}}]\n  result: {structured: {summary: made it}}\n", match, name, name, content)
		}
	}
	s.play(script)
	plan, before := "tasks:\n", ""
	for _, name := range []string{"ta", "tb", "tc", "td"} { // one after the other
		plan += fmt.Sprintf("  - {name: %s, prompt: Do it., writes: [app/models/%s.rb], after: [%s]}\n", name, name, before)
		before = name
	}
	s.tasks(plan)
	out := s.run("all")
	if count(out, flow.Complete) != 4 || s.fixes() != 4 || len(out.Waiting) != 0 {
		t.Errorf("%+v, %d fixes, %+v", out.State.Units, s.fixes(), out.Waiting)
	}
}
