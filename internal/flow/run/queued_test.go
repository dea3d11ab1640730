package run_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/agent"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/research"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/flow/sample"
	"lockkeeper/sched"
	"lockkeeper/store"
)

// enqueue queues all work that is due and starts none.
func (s *scene) enqueue() *run.Pipeline {
	s.t.Helper()
	p, err := run.New(s.opt)
	must(s.t, err)
	must(s.t, s.opt.Store.Update(s.t.Context(), func(tx store.Tx) error {
		w := s.worker()
		w.Expires = tx.Now().Lease.Add(hung)
		return tx.PutWorker(w)
	}))
	must(s.t, p.Enqueue(s.t.Context()))
	return p
}

// worker is the worker to which a test dispatches items of the flow.
func (s *scene) worker() lockkeeper.Worker {
	return lockkeeper.Worker{ID: "w", Node: "here", Only: true, Roots: []string{"flow/" + s.opt.Flow.Name}}
}

// slots replaces the limits of the queue.
func (s *scene) slots(l sched.Limits) {
	s.t.Helper()
	var err error
	s.opt.Queue, err = sched.New(s.opt.Store, s.opt.Locks, sched.Options{Phases: flow.QueueOrder(), Limits: l})
	must(s.t, err)
}

// dispatch dispatches everything that can start, in order, with its locks.
func (s *scene) dispatch() (jobs []*sched.Job) {
	s.t.Helper()
	for {
		job, err := s.opt.Queue.Dispatch(s.t.Context(), s.worker())
		must(s.t, err)
		if job == nil {
			return jobs
		}
		jobs = append(jobs, job)
	}
}

func (s *scene) finish(jobs []*sched.Job) {
	s.t.Helper()
	for _, job := range jobs {
		_, err := job.Finish(s.t.Context(), nil, nil)
		must(s.t, err)
	}
}

// items lists the items in a status.
func (s *scene) items(status lockkeeper.ItemStatus) (list []*lockkeeper.Item) {
	s.t.Helper()
	must(s.t, s.opt.Store.View(s.t.Context(), func(r store.Reader) (err error) {
		list, err = r.Items(store.ItemQuery{Status: status, Limit: 1_000})
		return err
	}))
	return list
}

// modulesOf returns the modules of jobs without duplicates.
func modulesOf(jobs []*sched.Job) []string {
	var modules []string
	for _, job := range jobs {
		modules = append(modules, job.Item.Project)
	}
	slices.Sort(modules)
	return slices.Compact(modules)
}

// An application of 17 modules with 102 controllers and 204 screens. Its screens wait only for
// agent slots. The merges of one module run at the same time, except those that write the same
// file. Modules take turns.
//
// shows: SW-4 SW-22
func TestFullSize(t *testing.T) {
	const modules, controllers, screens, agents = 17, 102, 204, 12
	s := newScene(t, "SQLite", "screens")
	must(t, os.RemoveAll(s.root), sample.Large{Controllers: controllers}.Write(s.root), os.Mkdir(filepath.Join(s.root, ".lockkeeper"), 0o700))
	found, err := filepath.Glob(filepath.Join(s.root, "app/controllers/area*/*_controller.rb"))
	must(t, err)
	var m flow.Manifest
	targets := map[string][]string{} // of each screen
	shares := map[string]bool{}      // controllers that write the model of their module
	sharing := map[string]int{}      // how many of them a module has
	for _, file := range found {
		name := strings.TrimSuffix(filepath.Base(file), "_controller.rb")
		module := filepath.Base(filepath.Dir(file))
		unit, model := module+"/"+name, "app/models/"+module+"/record.rb"
		list := flow.ManifestScreen{Name: "List", Module: module, Controller: name, PrimaryAction: "index", SecondaryActions: []string{}, ReadsFrom: []string{model}}
		detail := list
		detail.Name, detail.PrimaryAction = "Detail", "show"
		m.Screens = append(m.Screens, list, detail)
		targets[list.ID()] = []string{"app/controllers/" + unit + "_controller.rb"}
		targets[detail.ID()] = []string{"app/views/" + unit + "/index.html.erb"}
		if sharing[module] < 2 {
			sharing[module]++
			shares[unit] = true
			targets[detail.ID()] = append(targets[detail.ID()], model)
		}
	}
	if len(sharing) != modules || len(m.Screens) != screens {
		t.Fatalf("%d screens in %d modules", len(m.Screens), len(sharing))
	}
	text, err := json.Marshal(m)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(s.root, "screens.json"), text, 0o644))
	s.reassemble("screens")

	few, many := sched.DefaultLimits(), sched.DefaultLimits()
	few.Agents, many.Agents = agents, screens
	s.slots(few)
	if units := s.enqueue().Units(); len(units) != controllers {
		t.Fatalf("%d controllers are discovered", len(units))
	}
	first := s.dispatch()
	if len(first) != agents || len(modulesOf(first)) != agents {
		t.Errorf("%d screens of the modules %v have a slot, want %d of as many modules", len(first), modulesOf(first), agents)
	}
	queued := s.items(lockkeeper.ItemQueued)
	if len(queued) != screens-agents {
		t.Errorf("%d screens are queued", len(queued))
	}
	for _, it := range queued {
		if it.WaitsOn != "" && it.WaitsOn != store.InRoot(store.OnPool(sched.PoolAgent), it.Root) {
			t.Errorf("%s waits on %s", it.Key, it.WaitsOn)
		}
	}

	s.slots(many)
	analyze := func(jobs []*sched.Job) {
		for _, job := range jobs {
			w, ok := run.WorkOf(&job.Item)
			if !ok || w.Kind != string(flow.Screen) {
				t.Fatalf("%+v is no screen", job.Item)
			}
			doc := flow.ScreenDoc{Screen: w.Part, Findings: []json.RawMessage{json.RawMessage(`"It can be better."`)}, WriteTargets: targets[w.Name()]}
			must(t, s.opt.Progress.PutScreen(t.Context(), path.Dir(w.Unit), path.Base(w.Unit), w.Part, doc, nil))
		}
	}
	analyze(first)
	s.finish(first)
	rest := s.dispatch()
	if len(rest) != screens-agents {
		t.Errorf("with slots for all, %d of %d screens run at the same time", len(rest), screens-agents)
	}
	analyze(rest)
	s.finish(rest)

	s.enqueue() // plans the merges
	s.enqueue()
	merges := s.dispatch()
	if want := controllers - modules; len(merges) != want {
		t.Fatalf("%d merges run at the same time, want %d: all but one of each module", len(merges), want)
	}
	if turn := modulesOf(merges[:modules]); len(turn) != modules {
		t.Errorf("the first %d merges are of the modules %v", modules, turn)
	}
	at := map[string]int{}
	for _, job := range merges {
		if shares[job.Item.Workflow[:strings.LastIndexByte(job.Item.Workflow, '/')]] {
			at[job.Item.Project]++
		}
	}
	for module := range sharing {
		if at[module] != 1 {
			t.Errorf("%d merges that write the model of %s run", at[module], module)
		}
	}
	s.finish(merges)
	if last := s.dispatch(); len(last) != modules || len(modulesOf(last)) != modules {
		t.Errorf("then %d merges of the modules %v run", len(last), modulesOf(last))
	}
	s.apart()
}

// Each screen is one item. It locks for reading what the manifest and the layout name, and writes
// nothing but its own documents.
//
// shows: SW-26
func TestScreenItems(t *testing.T) {
	s := newScene(t, "memory", "screens")
	s.enqueue()
	items := map[string]*lockkeeper.Item{}
	for _, it := range s.items(lockkeeper.ItemQueued) {
		items[it.Workflow] = it
	}
	if len(items) != len(s.opt.Manifest.Screens) {
		t.Errorf("%d items for %d screens", len(items), len(s.opt.Manifest.Screens))
	}
	for _, screen := range s.opt.Manifest.Screens {
		it := items[screen.ID()]
		if it == nil || it.Phase != "analyze" {
			t.Errorf("%s: %+v", screen.ID(), it)
			continue
		}
		var reads []string
		for _, l := range it.Locks {
			at := l.Path
			if l.Kind == lockkeeper.Dir {
				at += "/"
			}
			switch {
			case l.Mode == lockkeeper.Read:
				reads = append(reads, at)
			case !strings.HasPrefix(at, ".analysis/"+screen.Unit()+"/"):
				t.Errorf("%s writes %s", it.Workflow, at)
			}
		}
		unit := screen.Unit()
		want := append([]string{"app/controllers/" + unit + "_controller.rb", "app/views/" + unit + "/"}, screen.ReadsFrom...)
		want = append(want, s.models(unit)...)
		slices.Sort(want)
		slices.Sort(reads)
		if want = slices.Compact(want); !slices.Equal(reads, want) {
			t.Errorf("%s reads\n%q, want\n%q", it.Workflow, reads, want)
		}
	}
}

// models returns the model files of a controller of the sample.
func (s *scene) models(unit string) []string {
	return map[string][]string{
		"blog/posts": {"app/models/blog/post.rb"}, "blog/comments": {"app/models/blog/comment.rb"},
		"accounts/sessions": {"app/models/accounts/session.rb"}, "accounts/registrations": {"app/models/accounts/registration.rb"},
	}[unit]
}

// A screen stays queued while another holder writes one of its files. Its status changes together
// with the acquisition of its locks.
//
// shows: SW-64
func TestQueuedUntilLocked(t *testing.T) {
	s := newScene(t, "memory", "screens")
	s.opt.Only = []string{"blog/posts/Post List"}
	p := s.enqueue()
	status := func() (status string, locked bool) {
		t.Helper()
		st, err := p.State(t.Context())
		must(t, err)
		at := st.Units[0].Batches[0].WorkState
		grants, err := s.locks.ActiveGrants(t.Context())
		must(t, err)
		return at.Status, slices.ContainsFunc(grants, func(g lockkeeper.GrantSnapshot) bool { return g.Holder == at.Item })
	}
	if at, locked := status(); at != flow.Queued || locked {
		t.Errorf("it is %s, with locks: %v", at, locked)
	}
	held, err := s.locks.TryAcquire(t.Context(), lockkeeper.Request{Holder: "otter", Locks: []lockkeeper.Lock{{Target: lockkeeper.Target{Path: "app/models/user.rb", Kind: lockkeeper.File}, Mode: lockkeeper.Write}}})
	must(t, err)
	if jobs := s.dispatch(); len(jobs) != 0 {
		t.Fatalf("%+v was dispatched while otter holds its file", jobs[0].Item)
	}
	if at, locked := status(); at != flow.Queued || locked {
		t.Errorf("while it waits it is %s, with locks: %v", at, locked)
	}
	_, err = s.locks.Release(t.Context(), held.ID, held.Token)
	must(t, err)
	jobs := s.dispatch()
	if len(jobs) != 1 {
		t.Fatalf("%d were dispatched", len(jobs))
	}
	if at, locked := status(); at != "analyzing" || !locked {
		t.Errorf("with its locks it is %s, with locks: %v", at, locked)
	}
}

// Agents of screens run at the same time, as processes, up to the limit of agents and never more.
//
// shows: SW-22
func TestAgentProcesses(t *testing.T) {
	const agents = 2
	s := newScene(t, "memory", "screens")
	limits := sched.DefaultLimits()
	limits.Agents, s.opt.Limits.Agents = agents, agents
	s.slots(limits)
	dir := filepath.Dir(s.script) // agents can write there
	s.opt.Agents.Named = func(string) (agent.Adapter, error) {
		return agent.ByName("command", "sh", "-c", `cat > /dev/null
			me=$(mktemp "$1/running.XXXXXX")
			ls "$1" | grep -c running >> "$1/counts"
			until [ -e "$1/go" ]; do sleep 0.01; done
			rm "$me"
			echo '{"screen": "x", "findings": [], "write_targets": []}'`, "sh", dir)
	}
	p, err := run.New(s.opt)
	must(t, err)
	var out *run.Outcome
	ended := make(chan error, 1)
	go func() {
		var err error
		out, err = p.Run(t.Context(), nil)
		ended <- err
	}()
	running := func() int {
		list, err := filepath.Glob(filepath.Join(dir, "running.*"))
		must(t, err)
		return len(list)
	}
	settled := func() bool {
		queued, dispatched := s.items(lockkeeper.ItemQueued), s.items(lockkeeper.ItemDispatched)
		all := append(queued, dispatched...)
		waiting := slices.DeleteFunc(slices.Clone(all), func(it *lockkeeper.Item) bool { return it.WaitsOn == "" })
		return len(all) == len(s.opt.Manifest.Screens) && len(waiting)+running() == len(all)
	}
	for began := time.Now(); !settled(); time.Sleep(time.Millisecond) {
		if time.Since(began) > hung {
			t.Fatal("the queue never settled")
		}
	}
	if n := running(); n != agents {
		t.Errorf("%d agents run at the same time, want %d", n, agents)
	}
	must(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	must(t, <-ended)
	if out.Failed != 0 || out.Complete != len(out.State.Units) {
		t.Errorf("%+v", out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "counts"))
	must(t, err)
	counts := strings.Fields(string(text))
	if len(counts) != len(s.opt.Manifest.Screens) || slices.ContainsFunc(counts, func(n string) bool { return n != "1" && n != "2" }) {
		t.Errorf("agents at each start: %q", counts)
	}
}

// Research by the API has its own limit of 20 and takes no slot of an agent.
//
// shows: PL-71
func TestAPISlots(t *testing.T) {
	s := newScene(t, "memory", "controllers")
	client, err := research.New(research.Options{APIKey: "sk-test", BaseURL: "http://127.0.0.1:1"})
	must(t, err)
	s.opt.Research, s.opt.API = client, true
	const unit, topics = "blog/posts", 25
	var a flow.Analysis
	must(t, json.Unmarshal([]byte(`{"purpose":"p","behaviour":"b","screens":[],"relations":[],"files":[],"research_topics":[]}`), &a))
	for n := range topics {
		a.Topics = append(a.Topics, flow.Topic{Prompt: fmt.Sprintf("Question %d?", n)})
	}
	must(t, s.opt.Progress.PutAnalysis(t.Context(), unit, a, nil))
	limits := sched.DefaultLimits()
	limits.Agents = 2
	s.slots(limits)
	s.enqueue()
	pools := map[string]int{}
	for _, job := range s.dispatch() {
		for _, pool := range job.Item.Pools {
			pools[pool]++
		}
	}
	if pools[sched.PoolAPI] != 20 || pools[sched.PoolAgent] != 2 || len(pools) != 2 {
		t.Errorf("%v run at the same time, want 20 API calls and 2 agents", pools)
	}
}
