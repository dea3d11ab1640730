package sample

import (
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"lockkeeper/internal/flow"
)

// controllers returns the controllers of an application, with their tests.
func controllers(t testing.TB, dir string) []flow.FoundUnit {
	t.Helper()
	found, err := flow.Discover(os.DirFS(dir), flow.DiscoverOptions{Glob: "app/controllers/**/*_controller.rb", Excludes: []string{"application_controller"},
		TestPath: "test/controllers/{controller}_controller_test.rb", Layout: flow.Rails()})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// plan plays all phases before the batches of a controller. It rejects items with low impact and
// high effort.
func (s *stage) plan(controller string) (p flow.Plan, rejected, topics int) {
	s.Helper()
	var a flow.Analysis
	s.ask("analyze", controller, "analysis", &a)
	for _, path := range a.Files {
		content(s, s.dir, path)
	}
	var e flow.Extract
	s.ask("extract", controller, "extract", &e)
	var ready flow.Synthesis
	s.ask("synthesize", controller, "synthesis", &ready)
	if err := flow.CheckSynthesis(ready, e.Numbered()); err != nil {
		s.Error(err)
	}
	var todo []flow.Decided
	for _, item := range ready.Items {
		d := flow.Decided{Ready: item, Decision: flow.Todo}
		if item.Impact == flow.Low && item.Effort == flow.High {
			d.Decision = flow.Reject
			rejected++
		}
		todo = append(todo, d)
	}
	var answer flow.Plan
	s.ask("batch_plan", controller, "batches", &answer)
	p, err := flow.Number(answer)
	if err == nil {
		_, err = flow.CheckPlan(p, todo)
	}
	if err != nil {
		s.Fatal(controller, err)
	}
	for i, b := range p.Batches {
		if b.ID != answer.Batches[i].ID {
			s.Errorf("%s: batch %s of the script is %s", controller, answer.Batches[i].ID, b.ID)
		}
	}
	return p, rejected, len(a.Topics)
}

// draw removes a random element for which ready returns true.
func draw[T any](chance *rand.Rand, rest *[]T, ready func(T) bool) T {
	for {
		i := chance.IntN(len(*rest))
		if one := (*rest)[i]; ready(one) {
			*rest = slices.Delete(*rest, i, i+1)
			return one
		}
	}
}

// In any order of batches, the application passes its checks after each batch and ends the same.
// One controller has an item that is not worth its effort. One batch writes an undeclared file, and
// two others are fixed, for a test and for style.
func TestControllersFlow(t *testing.T) {
	type job struct {
		unit flow.FoundUnit
		flow.Batch
	}
	s := blog(t)
	var plan []job
	var rejected, topics int
	writers := map[string]int{}
	found := controllers(t, s.dir)
	for _, c := range found {
		p, no, open := s.plan(c.Name)
		rejected, topics = rejected+no, topics+open
		for _, b := range p.Batches {
			plan = append(plan, job{c, b})
			for _, path := range b.WriteTargets {
				writers[path]++
			}
		}
	}
	if len(found) != 4 || len(plan) != 10 || rejected != 1 || topics != 1 || writers["app/controllers/concerns/authentication.rb"] != 3 || writers["app/models/blog/post.rb"] != 2 {
		t.Fatal(len(found), len(plan), rejected, topics, writers)
	}
	if !maps.Equal(tree(t, s.dir), tree(t, fresh(t))) {
		t.Fatal("planning changed something")
	}
	var last map[string]string
	for _, seed := range orders(2) {
		s, jobs := blog(t), slices.Clone(plan)
		chance, done, odd := rand.New(rand.NewPCG(seed, 0)), map[string]bool{}, map[string]ran{}
		for len(jobs) > 0 {
			j := draw(chance, &jobs, func(j job) bool {
				return !slices.ContainsFunc(j.After, func(id string) bool { return !done[j.unit.Name+"/"+id] })
			})
			name := j.unit.Name + "/" + j.ID
			done[name] = true
			if r := s.work("apply", name, j.Batch, Test+" "+j.unit.Test); r != (ran{}) {
				odd[name] = r
			}
			s.rightNow()
		}
		want := map[string]ran{"blog/comments/b1": {fixedTests: 1}, "accounts/sessions/b2": {fixedCI: 1}, "accounts/registrations/b2": {gaps: 1}}
		if !maps.Equal(odd, want) {
			t.Errorf("seed %d: %v, want %v", seed, odd, want)
		}
		if last == nil {
			last = tree(t, s.dir)
		} else if now := tree(t, s.dir); !maps.Equal(now, last) {
			t.Errorf("seed %d ends otherwise: %v, %v", seed, now, last)
		}
	}
}

// In any order of controllers, the screens' write targets cover the merge, and the application
// passes its checks after each one.
//
// shows: SW-24
func TestScreensFlow(t *testing.T) {
	for _, seed := range orders(1) {
		s := blog(t)
		m, err := flow.ReadManifest(Manifest, []byte(content(t, s.dir, Manifest)))
		if err != nil {
			t.Fatal(err)
		}
		if len(m.Screens) != 9 || len(m.Shared()) < 5 {
			t.Errorf("%d screens share %v", len(m.Screens), m.Shared())
		}
		tests := map[string]string{}
		for _, c := range controllers(t, s.dir) {
			tests[c.Name] = c.Test
		}
		groups, chance := m.Controllers(), rand.New(rand.NewPCG(seed, 0))
		for len(groups) > 0 {
			g := draw(chance, &groups, func(flow.ScreenGroup) bool { return true })
			var docs []flow.ScreenDoc
			for _, screen := range g.Screens {
				for _, path := range screen.ReadsFrom {
					content(t, s.dir, path)
				}
				if text := content(t, s.dir, "app/controllers/"+g.Unit+"_controller.rb"); !strings.Contains(text, "def "+screen.PrimaryAction+"\n") {
					t.Errorf("%s has no action %s", g.Unit, screen.PrimaryAction)
				}
				var d flow.ScreenDoc
				s.ask("screen", screen.ID(), "screen", &d)
				if d.Screen != screen.Name {
					t.Errorf("%s answers for %s", screen.Name, d.Screen)
				}
				docs = append(docs, d)
			}
			name := g.Unit + "/merge"
			if r := s.work("merge", name, flow.Batch{WriteTargets: flow.Aggregate(docs)}, Test+" "+tests[g.Unit]); r != (ran{}) {
				t.Errorf("seed %d, %s: %v", seed, name, r)
			}
			s.rightNow()
		}
	}
}

// The default answers of verification and fixes apply to every unit.
func TestRest(t *testing.T) {
	s := blog(t)
	for _, name := range []string{"blog/posts/b1", "blog/posts/merge", "long-passwords"} {
		var v flow.Verdict
		if s.ask("verify", name, "verdict", &v); v.Verdict != "pass" {
			t.Errorf("%s: %+v", name, v)
		}
		var did struct{ Summary string }
		s.ask("fix_tests", name, "summary", &did)
		s.ask("fix_ci", name, "summary", &did)
	}
}

// Tasks can run in any order that their plan permits, and can be repeated.
func TestTasksFlow(t *testing.T) {
	for _, seed := range orders(1) {
		s := blog(t)
		read, err := flow.ReadTasks(Tasks, []byte(content(t, s.dir, Tasks)))
		if err != nil {
			t.Fatal(err)
		}
		batches := read.Batches("a test", time.Time{}).Batches
		if len(batches) != 10 {
			t.Fatal(len(batches))
		}
		chance, done := rand.New(rand.NewPCG(seed, 0)), map[string]bool{}
		for len(batches) > 0 {
			b := draw(chance, &batches, func(b flow.Batch) bool {
				return !slices.ContainsFunc(b.After, func(id string) bool { return !done[id] })
			})
			done[b.ID] = true
			if r := s.work("task", b.ID, b, b.Tests...); r != (ran{}) || len(b.Tests) == 0 {
				t.Errorf("seed %d, %s: %v", seed, b.ID, r)
			}
			s.rightNow()
		}
		once := tree(t, s.dir)
		for id := range done { // a repeated call changes nothing
			var did struct{ Summary string }
			s.ask("task", "+tasks/"+id, "summary", &did)
		}
		if !maps.Equal(once, tree(t, s.dir)) {
			t.Error("tasks that are played again change something")
		}
	}
}

// Only the pauses depend on the pace.
func TestPace(t *testing.T) {
	texts := map[float64]string{}
	for _, pace := range []float64{0, 1, 0.5} {
		text, err := Script(pace)
		if err != nil {
			t.Fatal(err)
		}
		texts[pace] = string(text)
	}
	for pace, sleep := range map[float64]string{0: "sleep: 0s", 1: "sleep: 1.5s", 0.5: "sleep: 750ms"} {
		if !strings.Contains(texts[pace], sleep) || strings.Count(texts[pace], "\n") != strings.Count(texts[1], "\n") {
			t.Errorf("pace %g has no %q", pace, sleep)
		}
	}
	if text, err := Research(); err != nil || len(text) < 100 {
		t.Error(text, err)
	}
}
