package view_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/durable"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/documents"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project/projecttest"
	"lockkeeper/sched"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// write returns a write lock on a file.
func write(path string) lockkeeper.Lock {
	return lockkeeper.Lock{Target: lockkeeper.Target{Path: path, Kind: lockkeeper.File}, Mode: lockkeeper.Write}
}

// order returns an item of the flow controllers, as a run enqueues it.
func order(unit, phase, key string, locks ...lockkeeper.Lock) sched.ItemSpec {
	return sched.ItemSpec{Key: "controllers/" + documents.KeyName(unit) + "/" + key, Workflow: unit, Unit: "controller", Phase: phase, Root: "flow/controllers", Pools: []string{sched.PoolAgent}, Locks: locks, By: ada}
}

// batchOrder returns an item for a batch.
func batchOrder(u *progress.Unit, batch string, locks ...lockkeeper.Lock) sched.ItemSpec {
	b, _ := u.Batch(batch)
	o := order(u.Name, "apply", fmt.Sprintf("batch/%s@%s", batch, b.Digest[:8]), locks...)
	o.Workflow, o.Unit = u.Name+"/"+batch, "batch"
	return o
}

// controller adds a controller to the codebase.
func (s *scene) controller(name string) {
	s.t.Helper()
	file := filepath.Join(s.root, "app/controllers", name+"_controller.rb")
	must(s.t, os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte("class Page\nend\n"), 0o644))
}

// analyzed writes the first document of a controller, with topics for research.
func (s *scene) analyzed(name string, topics ...string) *progress.Tracker {
	s.t.Helper()
	s.controller(name)
	book, _, _, err := conduct.OpenDocuments(s.app, "controllers")
	must(s.t, err)
	a := flow.Analysis{Purpose: "pages of " + name, Behaviour: "it shows them", Screens: []flow.Served{}, Relations: []flow.Relation{}, Files: []string{}, Topics: []flow.Topic{}}
	for _, topic := range topics {
		a.Topics = append(a.Topics, flow.Topic{Prompt: topic})
	}
	must(s.t, book.PutAnalysis(s.t.Context(), name, a, nil))
	return book
}

// audited advances a controller until its items need decisions.
func (s *scene) audited(name string, items ...string) *progress.Tracker {
	s.t.Helper()
	book := s.analyzed(name)
	projecttest.Synthesized(s.t, book, name, items...)
	return book
}

// planned advances a controller until its batches can start. Each item has its own batch.
func (s *scene) planned(name string, items ...string) (*progress.Tracker, *progress.Unit) {
	s.t.Helper()
	ctx := s.t.Context()
	book := s.audited(name, items...)
	var batches []flow.Batch
	for i := range items {
		id := fmt.Sprint("i", i+1)
		must(s.t, book.Decide(ctx, name, "ada", progress.Choice{Item: id, Decision: flow.Todo}))
		batches = append(batches, flow.Batch{ID: fmt.Sprint("b", i+1), Title: "Part " + id, Items: []string{id}, WriteTargets: []string{fmt.Sprintf("app/%s.rb", id)}})
	}
	must(s.t, book.PutPlan(ctx, name, batches, nil), book.ApprovePlan(ctx, name, "ada"))
	u, err := book.Unit(ctx, name)
	must(s.t, err)
	return book, u
}

// paid records a call of an agent.
func (s *scene) paid(run, unit, phase string, usd float64, tokens int64) {
	s.t.Helper()
	dir := filepath.Join(s.root, ".lockkeeper/calls", documents.KeyName("controllers/"+unit+"/"+phase), "1")
	must(s.t, os.MkdirAll(dir, 0o700), durable.WriteJSON(s.t.Context(), filepath.Join(dir, "call.json"), map[string]any{
		"agent": "claude", "phase": phase, "cost_usd": usd, "tokens": tokens, "began": time.Now(), "took": time.Second, "unit": unit, "run": run, "used": true}, 0o600),
		os.WriteFile(filepath.Join(dir, "workspace"), nil, 0o600), os.WriteFile(filepath.Join(dir, "output"), nil, 0o600))
}

// still replaces the values that differ between runs of a test.
func still(text []byte) string {
	for pattern, name := range map[string]string{
		`"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z"`: `"TIME"`, `[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`: "UUID", `"(age|waiting)_seconds": [0-9.e-]+`: `"${1}_seconds": 0`, `\n *"blocked": [0-9]+,`: "",
		`"worker": "here/[A-Z0-9]+"`: `"worker": "here/1"`,
	} {
		text = regexp.MustCompile(pattern).ReplaceAll(text, []byte(name))
	}
	return string(text)
}

func golden(t *testing.T, name string, value any) {
	t.Helper()
	text, err := json.MarshalIndent(value, "", "  ")
	must(t, err)
	got, file := still(text)+"\n", filepath.Join("testdata", name)
	if *update {
		must(t, os.MkdirAll("testdata", 0o755), os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	must(t, err)
	if got != string(want) {
		t.Errorf("%s is not as it was (go test -update rewrites it):\n%s", file, got)
	}
}

// fullScene returns a codebase with an example of everything that the state shows.
func fullScene(t *testing.T) *scene {
	s := newScene(t, "max_claude_concurrency: 2\nrun: {budget_usd: 50}\n")
	ctx := t.Context()
	run, err := conduct.NewRun(ctx, s.app, "controllers", "")
	must(t, err)
	s.controller("blog/tags")                             // no run has requested it
	s.analyzed("blog/comments", "How do others page?")    // a topic needs a decision
	s.audited("blog/posts", "Page them", "Cache them")    // items need decisions
	book, u := s.planned("blog/users", "Throttle", "Log") // one batch is blocked, the other has a refused change
	_, err = book.Begin(ctx, "blog/users", "b2", "ada")
	must(t, err, book.PutApplied(ctx, "blog/users", "b2", flow.Applied{Batch: u.Batches[1].Digest, Summary: "done", Files: []flow.File{},
		Gaps: []flow.Gap{{Path: "app/secret.rb", Reason: "not in its grant", Phase: "apply", Planned: "batch_plan", At: time.Now()}}}, nil))
	s.paid(run, "blog/posts", "analyze", 1.25, 1000)
	s.paid("another", "blog/posts", "extract", 9, 9)
	s.hold("otter", "session", "app/i1.rb", "app/other.rb")
	s.work(1, 2, batchOrder(u, "b1", write("app/i1.rb")), order("blog/comments", "research", "topic/how-do-others-page"), order("blog/tags", "analyze", "analyze", write("app/other.rb")))
	return s
}

// shows: SW-69 PL-79 PL-94 SW-84 GP-9
func TestStateIsAsDocumented(t *testing.T) {
	s := fullScene(t)
	st, err := s.look.State(t.Context())
	must(t, err)
	golden(t, "state.json", st)

	var members map[string]json.RawMessage
	text, err := st.JSON()
	must(t, err)
	must(t, json.Unmarshal(text, &members))
	var locks map[string]json.RawMessage
	must(t, json.Unmarshal(members["locks"], &locks))
	for _, documented := range []string{"phase", "controllers", "workflows", "locks"} {
		if members[documented] == nil {
			t.Errorf("the state has no member %q", documented)
		}
	}
	for _, documented := range []string{"active_grants", "queue_depth", "active_items", "blocked_items", "gaps"} {
		if locks[documented] == nil {
			t.Errorf("locks has no member %q", documented)
		}
	}
}

// The state's own encoder writes what encoding/json writes.
func TestStateEncodesAsJSONDoes(t *testing.T) {
	s := fullScene(t)
	ctx := t.Context()
	s.audited("active_grants", `"active_grants":null`)
	s.audited(`"active_grants":null`, "x")
	for i, hostile := range []string{`<script>alert("x")</script>`, "tab\tand \\ and \"", "\u2028\u2029 ünïcode \U0001f600", "del\x7f&amp;"} {
		_, err := s.app.Locks.TryAcquire(ctx, lockkeeper.Request{Holder: fmt.Sprint("<b>", i), Policy: "dal", Metadata: map[string]string{hostile: hostile, "age_seconds": `,"age_seconds":0`, "a": "1"},
			Process: &lockkeeper.Process{Host: hostile, Boot: "b", PIDNS: "p", PID: 1, Start: 2, Group: i},
			Locks: []lockkeeper.Lock{write(fmt.Sprintf("lib/%d <&>.rb", i)), {Target: lockkeeper.Target{Path: fmt.Sprint("lib/r", i), Kind: lockkeeper.File}, Mode: lockkeeper.Read},
				{Target: lockkeeper.Target{Path: fmt.Sprint("lib/u", i), Kind: lockkeeper.File}, Mode: lockkeeper.Upgradeable}}})
		must(t, err)
	}
	st, err := s.look.State(ctx)
	must(t, err)
	for i, age := range []float64{0, 1e-9, 0.5, 1e21, 12345.678} {
		st.Locks.ActiveGrants[i].Age = age
	}
	want, err := json.Marshal(st)
	must(t, err)
	got, err := st.JSON()
	must(t, err)
	if !bytes.Equal(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if strings.Contains(string(got), "<script>") {
		t.Error("a text can end a script element")
	}
	empty, err := newScene(t, "").look.State(ctx)
	must(t, err)
	if got, err = empty.JSON(); err != nil || !strings.Contains(string(got), `"active_grants":[]`) {
		t.Errorf("of an empty space: %s, %v", got, err)
	}
}

// A grant that was renewed, or has another process, is encoded again.
func TestAChangedGrantIsEncodedAgain(t *testing.T) {
	s := newScene(t, "")
	ctx := t.Context()
	g, err := s.app.Locks.TryAcquire(ctx, lockkeeper.Request{Holder: "otter", Locks: []lockkeeper.Lock{write("a")}})
	must(t, err)
	s.hold("heron", "session", "b")
	told := map[string]bool{}
	look := func(changed bool) {
		t.Helper()
		st, err := s.look.State(ctx)
		must(t, err)
		want, err := json.Marshal(st)
		must(t, err)
		if got, err := st.JSON(); err != nil || !bytes.Equal(got, want) {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
		st.Locks.ActiveGrants[0].Age = 0
		text, err := json.Marshal(st.Locks.ActiveGrants[0])
		must(t, err)
		if told[string(text)] == changed {
			t.Errorf("changed %v: %s", changed, text)
		}
		told[string(text)] = true
	}
	look(true)
	look(false)
	_, err = s.app.Locks.Renew(ctx, g.ID, g.Token)
	must(t, err)
	look(true)
	self, err := process.Self()
	must(t, err)
	_, err = s.app.Locks.SetProcess(ctx, g.ID, g.Token, self)
	must(t, err)
	look(true)
	look(false)
}
