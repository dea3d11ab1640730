package run_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/run"
	"lockkeeper/store"
)

const tasks = "+tasks"

// One batch renames a method and lands, while another one waits to land. The tests of the second
// passed with the old name. It is tested again and fails, so the tree still passes its tests (no
// write skew).
//
// shows: PL-28 PL-30 SW-12
func TestWriteSkew(t *testing.T) {
	s := newScene(t, "SQLite", "tasks")
	s.opt.Limits.Fixes = 0
	s.tasks(`
tests: ["sh bin/check test/controllers/*/*_test.rb"]
tasks:
  - {name: rename, prompt: Rename the method., writes: [lib/words.rb, lib/use_one.rb]}
  - {name: use, prompt: Use the method., writes: [lib/use_two.rb], reads: [lib/words.rb], tests: ["sleep 2; sh test.sh"]}
`)
	s.opt.Tasks.Tests = []string{"sh test.sh"}
	for i := range s.opt.Tasks.Tasks {
		if s.opt.Tasks.Tasks[i].Name == "rename" {
			s.opt.Tasks.Tasks[i].Tests = []string{"sh test.sh"}
		}
	}
	write(t, s.root, "lib/words.rb", "def greet\nend\n")
	write(t, s.root, "lib/use_one.rb", "greet\n")
	write(t, s.root, "test.sh", "for word in $(cat lib/use_*.rb); do grep -q \"def $word\\$\" lib/words.rb || { echo \"no $word\"; exit 1; }; done\n")
	s.opt.Gate = s.gate(".")
	s.play(`
- match: '^# task .*rename'
  steps:
    - write: {path: lib/words.rb, content: "def welcome\nend\n"}
    - write: {path: lib/use_one.rb, content: "welcome\n"}
  result: {structured: {summary: renamed}}
- match: '^# task .*use'
  steps: [{write: {path: lib/use_two.rb, content: "greet\n"}}]
  result: {structured: {summary: used}}
- match: '^# verify '
  result: {structured: {verdict: pass, report: fine, issues: []}}
`)
	out := s.run("all")
	if b := s.batch(out, tasks, "rename"); b.Status != flow.Complete {
		t.Errorf("rename: %+v", b)
	}
	if b := s.batch(out, tasks, "use"); b.Status != flow.Failed || !strings.Contains(b.Error, "no greet") {
		t.Errorf("use: %+v", b)
	}
	if again := s.news(run.NewsAgain); len(again) != 1 || again[0].Batch != "use" {
		t.Errorf("tested again: %+v", again)
	}
	if _, err := os.Stat(filepath.Join(s.root, "lib/use_two.rb")); err == nil {
		t.Error("what failed its test landed")
	}
	s.shelved("lib/use_two.rb")
}

// shelved fails the test if the rescue shelf has no entry for a path.
func (s *scene) shelved(path string) {
	s.t.Helper()
	list, err := s.opt.Gate.Rescue().List(s.t.Context())
	must(s.t, err)
	for _, e := range list {
		if e.Path == path {
			return
		}
	}
	s.t.Errorf("nothing is kept of %s: %+v", path, list)
}

func write(t testing.TB, root, path, text string) {
	t.Helper()
	file := filepath.Join(root, filepath.FromSlash(path))
	must(t, os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644))
}

// one is a plan with one task that writes one file.
const one = "tasks: [{name: one, prompt: Do it., writes: [app/models/one.rb]}]\n"

const oneScript = `
- match: '^# task .*one'
  steps: [{write: {path: app/models/one.rb, content: "one\n"}}]
  result: {structured: {summary: made one}, cost_usd: 0.5, tokens: {input: 10, output: 5}}
- match: '^# fix_tests .*one'
  steps: [{write: {path: app/models/one.rb, content: "fixed\n"}}]
  result: {structured: {summary: fixed}}
- match: '^# verify .*one'
  result: {structured: {verdict: pass, report: fine, issues: []}}
`

func (s *scene) holds(path, want string) {
	s.t.Helper()
	got, err := os.ReadFile(filepath.Join(s.root, filepath.FromSlash(path)))
	if want == "" && err != nil {
		return
	}
	if string(got) != want {
		s.t.Errorf("%s holds %q, want %q", path, got, want)
	}
}

// With run.land: after_apply, a batch lands before it is tested, and is undone if its tests fail.
//
// shows: GP-18 PL-27 PL-28
func TestLandAfterApply(t *testing.T) {
	s := newScene(t, "memory", "tasks")
	s.opt.Land, s.opt.Limits.Fixes = "after_apply", 1
	s.tasks(strings.Replace(one, "]}]", "], tests: [\"grep fixed app/models/one.rb\"]}]", 1))
	s.play(oneScript)
	if b := s.batch(s.run("all"), tasks, "one"); b.Status != flow.Complete {
		t.Fatalf("%+v", b)
	}
	s.holds("app/models/one.rb", "fixed\n")

	s = newScene(t, "memory", "tasks")
	s.opt.Land, s.opt.Limits.Fixes = "after_apply", 1
	write(t, s.root, "app/models/one.rb", "before\n")
	s.tasks(strings.Replace(one, "]}]", "], tests: [\"grep never app/models/one.rb\"]}]", 1))
	s.play(oneScript)
	if b := s.batch(s.run("all"), tasks, "one"); b.Status != flow.Failed || !strings.Contains(b.Error, "after 1 fixes") {
		t.Fatalf("%+v", b)
	}
	s.holds("app/models/one.rb", "before\n")
	s.shelved("app/models/one.rb")
}

// Each batch becomes one commit with exactly its files, with trailers. Changes that a person has
// staged stay staged. While the person merges, nothing lands.
//
// shows: CF-15
func TestCommits(t *testing.T) {
	s := newScene(t, "SQLite", "tasks")
	s.withRepo()
	s.tasks(one)
	s.play(oneScript)
	write(t, s.root, "app/models/staged.rb", "mine\n")
	write(t, s.root, "app/models/loose.rb", "mine too\n")
	s.git("add", "app/models/staged.rb")
	merging := filepath.Join(s.root, ".git", "MERGE_HEAD")
	must(t, os.WriteFile(merging, []byte(strings.Repeat("0", 40)+"\n"), 0o644))
	go func() {
		for len(s.news(run.NewsPaused)) == 0 { // ends with the run at the latest
			time.Sleep(10 * time.Millisecond)
		}
		s.holds("app/models/one.rb", "")
		os.Remove(merging)
	}()
	if b := s.batch(s.run("all"), tasks, "one"); b.Status != flow.Complete {
		t.Fatalf("%+v", b)
	}
	if paused := s.news(run.NewsPaused); len(paused) != 1 || !strings.Contains(paused[0].Text, "merge") {
		t.Errorf("%+v", paused)
	}
	if got := strings.TrimSpace(s.git("show", "--name-only", "--format=", "HEAD")); got != "app/models/one.rb" {
		t.Errorf("committed %q", got)
	}
	message := s.git("log", "-1", "--format=%B")
	for _, trailer := range []string{"Lockkeeper-Batch: +tasks/one", "Lockkeeper-Grant: ", "Lockkeeper-Fence: "} {
		if !strings.Contains(message, trailer) {
			t.Errorf("no %s in %q", trailer, message)
		}
	}
	if got := s.git("status", "--porcelain"); got != "A  app/models/staged.rb\n?? app/models/loose.rb\n" {
		t.Errorf("status %q", got)
	}
}

// When the budget is used up, no call starts. With a larger budget the run resumes.
func TestBudget(t *testing.T) {
	s := newScene(t, "SQLite", "tasks")
	s.tasks("tasks: [{name: one, prompt: Do it., writes: [app/models/one.rb]}, {name: two, prompt: Do it., writes: [app/models/two.rb], after: [one]}]\n")
	s.play(strings.ReplaceAll(oneScript, "one'", "(one|two)'"))
	s.opt.Budget.USD = 0.5
	out := s.run("all")
	if out.Budget == "" {
		t.Fatalf("%+v", out)
	}
	if warned := s.news(run.NewsWarning); len(warned) == 0 || !strings.Contains(warned[0].Text, "$0.50 of $0.50") {
		t.Errorf("%+v", warned)
	}
	s.opt.Budget.USD = 5
	out = s.run("all")
	for id, want := range map[string]string{"one": flow.Complete, "two": flow.NoChange} { // two's agent writes what one wrote
		if b := s.batch(out, tasks, id); b.Status != want {
			t.Errorf("%s: %+v", id, b)
		}
	}
	if got := out.State.Spent.USD(); got < 0.99 {
		t.Errorf("spent $%.2f in both parts of the run", got)
	}
	if calls := s.callsFor("apply"); calls != 2 {
		t.Errorf("%d calls for two tasks", calls)
	}
}

// callsFor counts the recorded calls of a phase.
func (s *scene) callsFor(phase string) (n int) {
	s.t.Helper()
	calls, err := run.OpenJournal(s.opt.Calls).Calls(s.opt.Flow.Name)
	must(s.t, err)
	for _, c := range calls {
		if c.Phase == phase {
			n++
		}
	}
	return n
}

// While a rate limit of the API lasts, no call starts and no attempt is counted. The run knows how long
// it waited.
func TestLimit(t *testing.T) {
	s := newScene(t, "SQLite", "tasks")
	s.tasks(one)
	s.play(`
- match: '^# task .*one'
  times: 1
  result: {fail: {word: rate_limit, status: 429, text: "You've hit your limit", resets: 3}}
` + oneScript)
	p, err := run.New(s.opt)
	must(t, err)
	began := time.Now()
	out, err := p.Run(t.Context(), nil)
	must(t, err)
	if b := s.batch(out, tasks, "one"); b.Status != flow.Complete {
		t.Fatalf("%+v", b)
	}
	paused, resumed := s.news(run.NewsPaused), s.news(run.NewsResumed)
	if len(paused) != 1 || len(resumed) != 1 {
		t.Fatalf("paused %+v, resumed %+v", paused, resumed)
	}
	if pause := resumed[0].At.Sub(paused[0].At); p.Waited() < pause-pause/4-100*time.Millisecond || p.Waited() > time.Since(began) {
		t.Errorf("it waited %s, in a pause of %s", p.Waited(), pause)
	}
}

// The legacy mode has no locks and no queue, but the allowlist still applies. If two batches
// change the same file, the second is refused and its change is not lost.
//
// shows: PL-73 PL-56 SW-62 SW-66 CF-28 CF-29
func TestLegacy(t *testing.T) {
	s := newScene(t, "memory", "tasks")
	s.opt.Locks, s.opt.Queue = nil, nil
	s.opt.Gate = s.legacyGate("app", "test", "config")
	write(t, s.root, "app/models/one.rb", "before\n")
	s.tasks(`
tasks:
  - {name: one, prompt: Do it., writes: [app/models/one.rb]}
  - {name: other, prompt: Do it., writes: [app/models/one.rb], tests: ["sleep 1"]}
  - {name: outside, prompt: Do it., writes: [app/models/three.rb]}
`)
	s.play(`
- match: '^# task .*other'
  steps: [{write: {path: app/models/one.rb, content: "other\n"}}]
  result: {structured: {summary: made other}}
- match: '^# task .*outside'
  steps: [{write: {path: app/models/three.rb, content: "three\n"}}, {write: {path: bin/evil, content: "x"}}]
  result: {structured: {summary: made three}}
- match: '^# verify '
  result: {structured: {verdict: pass, report: fine, issues: []}}
` + oneScript)
	out := s.run("all")
	if b := s.batch(out, tasks, "one"); b.Status != flow.Complete {
		t.Errorf("one: %+v", b)
	}
	if b := s.batch(out, tasks, "outside"); b.Status != flow.Complete {
		t.Errorf("outside: %+v", b)
	}
	if b := s.batch(out, tasks, "other"); b.Status != flow.Failed || !strings.Contains(b.Error, "changed without its lock") {
		t.Errorf("other: %+v", b)
	}
	s.holds("app/models/one.rb", "one\n")
	s.holds("bin/evil", "")
	if gaps := s.news(run.NewsGap); len(gaps) != 1 || !strings.HasPrefix(gaps[0].Text, "bin/evil") {
		t.Errorf("%+v", gaps)
	}
	must(t, s.opt.Store.View(t.Context(), func(r store.Reader) error {
		items, err := r.Items(store.ItemQuery{Limit: 10})
		if len(items) != 0 {
			t.Errorf("the legacy mode queued %+v", items[0])
		}
		return err
	}))
}
