package run_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/run"
	"lockkeeper/store"
)

// three is a plan of three tasks. The last one comes after the first.
const three = `tasks:
  - {name: one, prompt: Do it., writes: [app/models/one.rb]}
  - {name: two, prompt: Do it., writes: [app/models/two.rb]}
  - {name: three, prompt: Do it., writes: [app/models/three.rb], after: [one]}
`

// threeScript lets each task write its file, at a price.
func threeScript(usd float64) string {
	calls := ""
	for _, name := range []string{"one", "two", "three"} {
		calls += fmt.Sprintf(`
- match: '^# task .*%[1]s'
  steps: [{write: {path: app/models/%[1]s.rb, content: "%[1]s\n"}}]
  result: {structured: {summary: made %[1]s}, cost_usd: %[2]g, tokens: {input: 10, output: 5}}
`, name, usd)
	}
	return calls + `
- match: '^# verify '
  result: {structured: {verdict: pass, report: fine, issues: []}}
`
}

// A person can run one task and leave out the others, also those that an earlier run queued.
//
// shows: PL-78
func TestOnlyOneTask(t *testing.T) {
	s := newScene(t, "SQLite", "tasks")
	s.tasks(three)
	s.play(threeScript(0.5))
	s.opt.Budget.USD = 0.4
	s.run("all") // leaves the tasks that it could not pay for in the queue
	s.opt.Budget.USD = 5
	out := s.conduct(request{Only: []string{"two"}})
	if out.Complete != 1 || len(out.State.Units) != 1 || len(out.State.Units[0].Batches) != 1 {
		t.Fatalf("%+v", out.State)
	}
	s.holds("app/models/two.rb", "two\n")
	s.holds("app/models/three.rb", "")
	out = s.run("all")
	if out.Complete != 1 || len(out.State.Units[0].Batches) != 3 {
		t.Fatalf("%+v", out.State)
	}
	s.holds("app/models/one.rb", "one\n")
	s.holds("app/models/three.rb", "three\n")
}

// A survey refuses a name that is unknown, work that cannot start, and a path that can never
// land, before the run starts.
//
// shows: PL-36
func TestOnlyWhatCanBeRun(t *testing.T) {
	s := newScene(t, "memory", "tasks")
	survey := func(plan string, only ...string) error {
		s.tasks(plan)
		s.opt.Gate, s.opt.Only = nil, only
		p, err := run.New(s.opt)
		must(t, err)
		return p.Survey(t.Context())
	}
	for words, err := range map[string]error{
		"no such unit, batch, screen":         survey(three, "four"),
		"comes after +tasks/one":              survey(three, "+tasks/three"),
		"tasks.yaml:1:43: one: write ref":     survey(strings.Replace("tasks: [{name: one, prompt: Do., writes: [app]}]", "[app]", "[lib/x.rb]", 1)),
		`path "app/models": is a directory`:   survey("tasks: [{name: one, prompt: Do., writes: [app/models]}]"),
		"protected: it is a hook, or decides": survey("tasks: [{name: one, prompt: Do., writes: [app/.claude/settings.json]}]"),
	} {
		if lockkeeper.CodeOf(err) != lockkeeper.CodeInput || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: %v", words, err)
		}
	}
	must(t, survey(three, "three", "one"), survey(three, "three", "+tasks"))
}

// One screen can be analyzed by itself. Its controller is not merged.
//
// shows: SW-21
func TestOnlyOneScreen(t *testing.T) {
	s := newScene(t, "memory", "screens")
	out := s.conduct(request{Only: []string{"blog/posts/Post List"}})
	if out.Complete != 1 || s.callsFor("analyze") != 1 || s.callsFor("merge") != 0 {
		t.Fatalf("%+v, %d calls", out.State, s.callsFor("analyze"))
	}
	all := s.run("all")
	if all.Complete != 4 || s.callsFor("analyze") != 9 {
		t.Errorf("%+v, %d calls", all.State, s.callsFor("analyze"))
	}
}

// Concurrent calls share the remaining budget. Three calls that cost $1.50 each fit into $5, and
// the run cannot spend more than that.
func TestBudgetIsShared(t *testing.T) {
	s := newScene(t, "memory", "tasks")
	s.tasks(strings.Replace(three, ", after: [one]", "", 1))
	s.play(threeScript(1.5))
	s.opt.Budget.USD = 5
	if out := s.run("all"); out.Complete != 1 || out.Budget != "" || out.State.Spent.USD() != 4.5 {
		t.Fatalf("%+v, %+v", out, out.State.Spent)
	}

	// If a share is too small, the call is made again with a larger share.
	s = newScene(t, "memory", "tasks")
	s.tasks(strings.Replace(three, ", after: [one]", "", 1))
	s.play(strings.Replace(threeScript(0.1), "cost_usd: 0.1", "cost_usd: 5", 1))
	s.opt.Budget.USD = 12
	if out := s.run("all"); out.Complete != 1 || out.Budget != "" || out.State.Spent.USD() != 10.2 {
		t.Fatalf("%+v, %+v", out, out.State.Spent)
	}
	if told := s.news(run.NewsWarning); len(told) == 0 || !strings.Contains(told[0].Text, "it used up its share of the budget, $4.00") {
		t.Errorf("%+v", told)
	}
}

// Each item keeps the log of its own agent. If a task is redone with another prompt, the first
// item keeps the first log.
func TestLogOfAnItem(t *testing.T) {
	s := newScene(t, "SQLite", "tasks")
	s.play(oneScript)
	s.tasks(one)
	s.run("all")
	s.tasks(strings.Replace(one, "Do it.", "Do it again", 1))
	s.run("all")
	var items []*lockkeeper.Item
	must(t, s.opt.Store.View(t.Context(), func(r store.Reader) (err error) {
		items, err = r.Items(store.ItemQuery{Limit: 10})
		return err
	}))
	if len(items) != 2 {
		t.Fatalf("%d items", len(items))
	}
	for _, it := range items {
		_, path, err := run.OpenJournal(s.opt.Calls).LastStep(it)
		must(t, err)
		_, generation, _ := strings.Cut(it.Key, "@")
		if folder := filepath.Base(filepath.Dir(filepath.Dir(path))); !strings.Contains(folder, "verify%40"+generation) {
			t.Errorf("%s: %s", it.Key, folder)
		}
	}
	if _, _, err := run.OpenJournal(s.opt.Calls).LastStep(&lockkeeper.Item{ID: "j0", Root: items[0].Root}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// The news of a run report three events: a batch landed before its tests, a test failed before an
// agent fixed it, and a failed change was undone.
//
// shows: PL-28
func TestNewsOfAFailedBatch(t *testing.T) {
	s := newScene(t, "memory", "tasks")
	s.opt.Land, s.opt.Limits.Fixes = "after_apply", 1
	s.tasks(strings.Replace(one, "]}]", "], tests: [\"grep never app/models/one.rb\"]}]", 1))
	s.play(oneScript)
	if b := s.batch(s.run("all"), tasks, "one"); b.Status != flow.Failed {
		t.Fatalf("%+v", b)
	}
	var got []string
	for _, n := range s.told {
		if n.Batch == "one" {
			got = append(got, string(n.Kind)+" "+n.Phase)
		}
	}
	want := "started apply, done apply, landed land, started test, red test, started fix_tests, landed land, started test, red test, undone land, failed test"
	if all := strings.Join(got, ", "); all != want {
		t.Errorf("told\n%s, want\n%s", all, want)
	}
	if red := s.news(run.NewsRed); !strings.HasPrefix(red[0].Text, "grep never app/models/one.rb: exit status 1: ") {
		t.Errorf("%+v", red[0])
	}
}
