package web

import (
	"context"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/report"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/view"
	"lockkeeper/lock"
	"lockkeeper/rescue"
	"lockkeeper/sched"
)

// noon is the current time in all scenes.
var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return noon.Add(-d) }

// A scene is a codebase in a state that the pages show.
type scene struct {
	now      view.Now
	queue    view.Decisions
	gates    map[progress.Kind]view.Decision
	board    view.Board
	unit     view.Unit
	change   view.BatchChange
	landed   view.LandingDetail
	item     view.Item
	call     view.CallDetail
	items    view.Items
	locks    view.Locks
	timeline view.Timeline
	run      view.Run
	rescue   view.Rescue
	rescued  view.RescueDetail
	nodes    view.Nodes
	audit    view.Audit
}

func (s *scene) Now(context.Context, uint64) (*view.Now, error)             { return &s.now, nil }
func (s *scene) Decisions(context.Context, string) (*view.Decisions, error) { return &s.queue, nil }
func (s *scene) Board(context.Context, string) (*view.Board, error)         { return &s.board, nil }
func (s *scene) Unit(context.Context, string, string) (*view.Unit, error)   { return &s.unit, nil }
func (s *scene) BatchChange(context.Context, string, string, string) (*view.BatchChange, error) {
	return &s.change, nil
}
func (s *scene) Landing(context.Context, uint64) (*view.LandingDetail, error) { return &s.landed, nil }
func (s *scene) Item(context.Context, string) (*view.Item, error)             { return &s.item, nil }
func (s *scene) Locks(context.Context) (*view.Locks, error)                   { return &s.locks, nil }
func (s *scene) Run(context.Context, string) (*view.Run, error)               { return &s.run, nil }
func (s *scene) Landings(context.Context, view.LandingsQuery) (*view.Landings, error) {
	return &view.Landings{Moment: s.run.Moment, Landings: s.run.Landings}, nil
}
func (s *scene) Rescue(context.Context) (*view.Rescue, error)                { return &s.rescue, nil }
func (s *scene) Nodes(context.Context) (*view.Nodes, error)                  { return &s.nodes, nil }
func (s *scene) Call(context.Context, string, int) (*view.CallDetail, error) { return &s.call, nil }
func (s *scene) Rescued(context.Context, string) (*view.RescueDetail, error) { return &s.rescued, nil }
func (s *scene) ReadItemNames(context.Context) error                         { return nil }
func (s *scene) NameOfItem(string) string                                    { return "" }
func (s *scene) CurrentFlow() string                                         { return "controllers" }
func (s *scene) NewestItem(name string) string {
	if name == view.ItemName(&s.item.Why.Item) {
		return s.item.Why.Item.ID
	}
	return ""
}
func (s *scene) Fits(context.Context, []view.RescueEntry) error { return nil }
func (s *scene) Items(context.Context, view.ItemsQuery) (*view.Items, error) {
	return &s.items, nil
}
func (s *scene) Audit(context.Context, view.AuditQuery) (*view.Audit, error) {
	return &s.audit, nil
}
func (s *scene) Timeline(context.Context, view.TimelineQuery) (*view.Timeline, error) {
	return &s.timeline, nil
}
func (s *scene) Decision(_ context.Context, _ string, ref progress.Ref) (*view.Decision, error) {
	g, ok := s.gates[ref.Kind]
	if !ok {
		return nil, &lockkeeper.InputError{Field: "reference", Value: ref.String(), Reason: "there is no such thing", Next: "look at what waits"}
	}
	g.Ref = ref
	return &g, nil
}

// empty returns a codebase without any runs.
func empty() *scene {
	s := &scene{}
	s.now.Run.State, s.run.Line.State = view.RunNone, view.RunNone
	s.run.Report = &report.Report{}
	s.item.Why.Item = lockkeeper.Item{ID: "j1", Workflow: "posts", Phase: "analyze", Status: lockkeeper.ItemQueued, QueuedAt: ago(time.Second)}
	s.item.State = "queued"
	s.call = view.CallDetail{Call: view.Call{Number: 1, Open: true}, Item: "j1", Name: "posts"}
	s.nodes.Version = "dev"
	s.unit = view.Unit{Flow: "controllers", BoardUnit: view.BoardUnit{UnitState: run.UnitState{Name: "posts", WorkState: run.WorkState{Status: flow.Idle}}}}
	s.change = view.BatchChange{Flow: "controllers", BatchDetail: view.BatchDetail{Unit: "posts", Batch: progress.Batch{Batch: flow.Batch{ID: "b1"}}, Status: "applying"}}
	s.landed = view.LandingDetail{Landed: view.Landing{Seq: 7, State: "committed"}, Diff: &view.Diff{}}
	return s
}

// words holds the names and texts of a scene.
type words struct {
	unit, other, path, holder, text, log string
}

var usual = words{unit: "admin/posts", other: "sessions", path: "app/models/post.rb", holder: "otter",
	text: "Use keyset pagination for the list of posts, as offsets get slow beyond page 50.",
	log:  "\x1b[32mRunning 14 tests\x1b[0m\n..............\n14 runs, 31 assertions, 0 failures\n"}

var hostile = words{unit: "posts/<script>alert(1)</script>", other: "ses\u202esnois", path: "app/\u202egpj.evil\nname\x1b[31m.rb", holder: `"><img src=x onerror=alert(1)>`,
	text: "</p><script>alert('x')</script> {{.Secret}} \u2066hidden\u2069 \u200bzero &amp; \x00nul", log: "</pre><script>alert(2)</script>\x1b]8;;http://evil\x07link\x1b[2J\r\nzeile\x9b31m"}

func (w words) ref(kind progress.Kind) progress.Ref {
	r := progress.Ref{Kind: kind, Unit: "admin/posts"}
	switch kind {
	case progress.TopicKind:
		r.Topic = "pagination"
	case progress.ItemKind:
		r.Item = "i3"
	case progress.ReviewKind:
		r.Batch = "b1"
	case progress.GapKind:
		r.Batch, r.Gap = "b1", 1
	case progress.FailureKind:
		r.Failure = "1a2b3c4d"
	}
	return r
}

const oneFile = `--- a/app/models/post.rb
+++ b/app/models/post.rb
@@ -1,6 +1,7 @@
 class Post < ApplicationRecord
-  scope :page, ->(n) { offset(n * 20).limit(20) }
+  scope :after, ->(id) { where("id > ?", id).limit(20) }
+  scope :recent, -> { order(id: :desc) }
   validates :title, presence: true
 
   belongs_to :author
`

// cockpit returns lanes of each kind, phases, a forecast and one cause of failures.
func (w words) cockpit(failure run.Failure) view.Cockpit {
	work := func(item, name, state string) *view.LaneWork {
		return &view.LaneWork{Item: item, Name: name, Unit: w.unit, Part: "b1", Phase: "apply", State: state, Since: ago(7 * time.Minute), Line: w.text, Said: ago(time.Minute), Calls: 2, USD: 0.31}
	}
	free := &view.FreeSlot{Reason: view.FreeLimited, Text: w.text, Until: noon.Add(time.Minute)}
	return view.Cockpit{
		Lanes:    []view.SlotLane{{ID: "agent-1", Pool: "agent", Work: work("j7", w.unit+"/b1", "running")}, {ID: "agent-" + w.holder + "-1", Pool: "agent", Machine: w.holder, Work: work("j5", "tags/b1", "running")}, {ID: "test-1", Pool: "test", Free: free}},
		Aside:    []view.LaneWork{*work("j8", w.unit+"/b2", "waiting for a slot")},
		Waiting:  view.QueueWaits{Slot: 12, Locks: 3, After: 7},
		Funnel:   []view.FunnelStep{{Phase: "analyze", Counts: "unit", Done: 110, Active: 4, Waiting: 6}, {Phase: "apply", Counts: "batch", ToCome: 3, Done: 61, Active: 8, Waiting: 12, People: 2, Failed: 2, Excluded: 1}},
		Progress: view.RunProgress{Share: 0.57, Failed: 0.03, Batches: 89, Landed: 61, Excluded: 1},
		Forecast: &view.Forecast{Made: ago(time.Minute), Finish: noon.Add(2 * time.Hour), Left: 7200, Error: 0.2, From: view.ErrorOfRuns, Runs: 3, Calls: 210, Later: 2},
		Excluded: []view.ExcludedWork{{Work: run.Work{Unit: w.unit, Kind: "batch", Part: "b9"}, Exclusion: progress.Exclusion{By: w.holder, At: ago(time.Hour), Reason: w.text}}},
		Causes:   []conduct.Cause{{ID: "5f1c0a2e", Title: w.text, Phases: []string{"test"}, Lines: []string{w.text}, Failures: []run.Failure{failure}, First: failure.At, Last: failure.At}},
	}
}

// middle returns a codebase with an active run and content on every page.
func middle(w words) *scene {
	s := &scene{}
	moment := view.Moment{At: noon, Seq: 4711}
	act := func(name, target string) view.Act {
		return view.Act{Name: name, Target: target, Command: "lockkeeper " + name + " " + target, Note: true}
	}
	blocker := view.Blocker{Name: w.other + "/b1", Item: "j7", GrantID: "0b1e28ba-2fa1-41d2-883f-0016d3cca427", Path: w.path}
	line := func(kind lockkeeper.EventKind, what string, d time.Duration) view.Line {
		return view.Line{Event: lockkeeper.Event{Seq: 4700 - uint64(d.Seconds()), At: ago(d), Kind: kind, Actor: lockkeeper.Actor{Name: w.holder, Kind: lockkeeper.ActorPerson}, GrantID: blocker.GrantID, Reason: w.text,
			Locks: []lockkeeper.Lock{{Target: lockkeeper.Target{Path: w.path, Kind: lockkeeper.File}, Mode: lockkeeper.Write}}, Data: map[string]string{"why": w.text}}, Name: w.unit, Item: "j7", What: what + " " + w.path, Text: what}
	}
	failure := run.Failure{Item: "j9", Work: run.Work{Unit: w.unit, Kind: "batch", Part: "b2"}, Phase: "test", Reason: "the tests failed three times: " + w.text, At: ago(4 * time.Minute)}
	s.now = view.Now{Moment: moment,
		Run: view.RunLine{State: view.RunActive, ID: "20260131T090000.000", Flow: "controllers", Began: ago(3*time.Hour + 20*time.Minute), Conductor: w.holder, Units: 120, Complete: 61, Failed: 2},
		Needs: view.Needs{Total: 41, Oldest: ago(2 * time.Hour), Kinds: []view.NeedsKind{{Kind: progress.ItemKind, Count: 37, First: w.ref(progress.ItemKind)}, {Kind: progress.PlanKind, Count: 2, First: w.ref(progress.PlanKind)},
			{Kind: progress.ReviewKind, Count: 1, First: w.ref(progress.ReviewKind)}, {Kind: progress.GapKind, Count: 1, First: w.ref(progress.GapKind)}}},
		Stuck: []view.Stuck{{Kind: view.StuckBlocked, Name: w.unit + "/b2", Item: "j8", Phase: "apply", Since: ago(7 * time.Minute), Behind: []view.Blocker{blocker}},
			{Kind: view.StuckSilent, Name: "tags/b1", Item: "j5", Phase: "apply", Since: ago(11 * time.Minute), Acts: []view.Act{act("cancel", "j5")}}},
		Failed: []run.Failure{failure},
		Changes: view.Changes{After: 4000, Since: ago(200 * time.Minute), Counts: []view.Count{{What: "landed", Count: 14}, {What: "gap", Count: 3}, {What: "recovered", Count: 2}},
			Latest: []view.Line{line(lockkeeper.EventLanded, "landed", time.Minute), line(lockkeeper.EventGap, "was refused", 6*time.Minute), line(lockkeeper.EventRecovered, "was recovered", 50*time.Minute)}},
		Cost:  view.Cost{USD: 31.04, Tokens: 12_345_678, Calls: 210, BudgetUSD: 50, RestUSD: 38, TotalUSD: 69},
		Slots: []view.Slots{{Pool: "agent", Taken: 12, Limit: 12}, {Pool: "test", Taken: 1, Limit: 4}}, Queued: 22, Blocked: 3,
		Enforcement: view.Enforcement{Mode: "auto", Level: "sandbox"}, Cockpit: w.cockpit(failure)}
	gate := func(kind progress.Kind, title string) view.OpenDecision {
		return view.OpenDecision{Weighed: acts.Weighed{Decision: progress.Decision{Ref: w.ref(kind), Title: title, Since: ago(40 * time.Minute), Frees: 1, Left: 4, Version: "abc123"}}}
	}
	item := gate(progress.ItemKind, w.text)
	item.Impact, item.Effort, item.Prior = "high", "low", "DEFER"
	item.Same = []progress.Ref{{Kind: progress.ItemKind, Unit: "tags", Item: "i2"}}
	second := gate(progress.ItemKind, "Cache the counts of comments.")
	second.Ref.Item, second.Impact, second.Effort = "i4", "medium", "high"
	s.queue = view.Decisions{Moment: moment, Flow: "controllers", Conductor: w.holder, Open: []view.OpenDecision{item, second, gate(progress.TopicKind, w.text), gate(progress.PlanKind, "2 batches to approve"), gate(progress.ReviewKind, w.text), gate(progress.GapKind, w.path), gate(progress.FailureKind, w.text)},
		Clusters: []view.Cluster{{Title: w.text, Refs: []progress.Ref{item.Ref, second.Ref}}},
		Progress: view.Progress{Answered: 79, Open: 41, Pace: 22, Left: 902, Last: ago(15 * time.Second)}}
	s.gates = w.gates(moment, s.queue.Open)
	s.board = w.board(moment)
	s.item = w.item(moment, act, line, blocker)
	s.unit = w.wholeUnit(s, act)
	s.change = view.BatchChange{Moment: moment, Flow: "controllers", BatchDetail: w.batch()}
	s.landed = view.LandingDetail{Moment: moment, Landed: w.landing(act), Flow: "controllers", Item: "j8", Detail: &s.change.BatchDetail, Diff: w.diff(), GrantID: blocker.GrantID, Later: []view.Landing{w.landing(act)}}
	s.call = w.call()
	s.items = view.Items{Moment: moment, Next: 12, Items: []view.ListedItem{{Item: &s.item.Why.Item, State: "running", Name: view.ItemName(&s.item.Why.Item)}}, Queue: view.QueueCount{Ready: 3, Blocked: 2, Running: 4, Completed: 70, Failed: 1}}
	queued, broken := s.item.Why.Item, s.item.Why.Item
	queued.ID, queued.Status, queued.Stage, queued.DispatchedAt = "j9", lockkeeper.ItemQueued, lockkeeper.StageWaiting, time.Time{}
	broken.ID, broken.Status, broken.Stage, broken.Failure, broken.CompletedAt = "j10", lockkeeper.ItemError, lockkeeper.StageEnded, &lockkeeper.Failure{Phase: "test", Reason: w.text}, ago(time.Minute)
	slots := view.Wait{Kind: view.WaitSlot, Text: w.text, Slots: &view.Slots{Pool: "agent", Taken: 8, Limit: 8}}
	s.items.Items = append(s.items.Items, view.ListedItem{Item: &queued, State: "blocked", Name: view.ItemName(&queued), Unit: w.unit, Waited: 1200, Waits: []view.Wait{{Kind: view.WaitLock, Blocker: &blocker}, slots, {Kind: view.WaitAfter, Text: w.text, Item: "j7"}, {Kind: view.WaitTurn, Text: "its turn"}}},
		view.ListedItem{Item: &broken, State: "failed", Name: view.ItemName(&broken), Unit: w.unit, Waited: 780, Worked: 360})
	s.locks = w.locks(moment, act)
	s.timeline = w.timeline(moment)
	s.run = w.run(moment, act)
	kept := view.RescueEntry{KeptChange: view.KeptChange{Entry: rescue.Entry{ID: "20260131T090000.123-1b4e28ba", At: ago(time.Hour), Kind: rescue.Gap, Path: w.path, Holder: w.holder, Reason: w.text, Size: 2048}, Mode: "0644"}, What: "gap", Until: noon.Add(300 * time.Hour), Acts: []view.Act{act("land", "x"), act("drop", "x")}}
	gap := w.ref(progress.GapKind)
	kept.Ref = &gap
	s.rescue = view.Rescue{Moment: moment, Entries: []view.RescueEntry{kept}, Kinds: map[string]int{"gap": 1}, Bytes: 2048, KeptFor: 14 * 24 * 3600}
	s.rescued = view.RescueDetail{Moment: moment, RescueEntry: kept, Diff: w.diff(), Content: "/somewhere/.lockkeeper/rescue/x", Next: "lockkeeper rescue land x"}
	s.nodes = w.nodes(moment)
	s.audit = view.Audit{Moment: moment, Lines: []view.Line{line(lockkeeper.EventLanded, "landed", time.Minute), line(lockkeeper.EventForceReleased, "was taken away from", time.Hour)}, Next: 4600, Oldest: 12, Kinds: []string{"acquired", "landed"}}
	return s
}

func (w words) diff() *view.Diff {
	return &view.Diff{Added: 2, Removed: 1, Files: []view.FileDiff{{Path: w.path, Change: "changed", Text: oneFile + "+" + w.text + "\n", Added: 2, Removed: 1}, {Path: "logo.png", Change: "added", Note: "binary content"}}}
}

func (w words) batch() view.BatchDetail {
	b := progress.Batch{Batch: flow.Batch{ID: "b1", Title: "Pagination", Items: []string{"i3", "i4"}, WriteTargets: []string{w.path, "app/controllers/posts_controller.rb"}, Reads: []string{"config/routes.rb"}, Effort: flow.Low}, Status: "verifying"}
	b.Applied = &flow.Applied{Summary: w.text}
	b.Tested = &flow.Checked{State: flow.CheckPassed, Passed: true, Fixes: 1, Runs: []flow.CheckRun{{Command: "bin/rails test test/controllers", Exit: 1, Took: 9 * time.Second, Output: "calls/x/out", Last: w.log}}}
	b.CI = &flow.Checked{Skipped: "nothing is configured", State: flow.CheckSkipped}
	b.Verification = &flow.Verification{Verdict: flow.Verdict{Verdict: "pass", Report: w.text, Issues: []string{w.text}}}
	items := []progress.Item{w.decided("i3", flow.Todo), w.decided("i4", flow.Todo)}
	sent := ago(time.Minute)
	comments := []progress.LineComment{{ID: "comment-1", Batch: "b1", Path: w.path, Line: 2, Quote: "  scope :after, ->(id) { where(\"id > ?\", id).limit(20) }", Text: w.text, By: w.holder, At: ago(time.Hour)},
		{ID: "comment-2", Batch: "b1", Path: w.path, Line: 70, Quote: w.text, Text: w.text, By: w.holder, At: ago(time.Hour), Sent: &sent}}
	return view.BatchDetail{Comments: comments, Unit: "admin/posts", Batch: b, Status: b.Status, Does: items, Diff: w.diff(), Gaps: []progress.Gap{{Gap: flow.Gap{Path: w.path, Reason: w.text, Phase: "apply", At: ago(time.Hour)}, Number: 1}}}
}

func (w words) decided(id string, decision flow.Decision) progress.Item {
	return progress.Item{Audited: flow.Audited{Ready: flow.Ready{ID: id, Description: w.text, Impact: flow.High, Effort: flow.Low, Rationale: w.text},
		Prior: &flow.Prior{Decision: flow.Defer, Description: w.text, Similar: true, At: ago(30 * 24 * time.Hour), Notes: w.text}}, Decision: decision, By: w.holder, At: ago(time.Hour)}
}

func (w words) gates(moment view.Moment, waiting []view.OpenDecision) map[progress.Kind]view.Decision {
	all := map[progress.Kind]view.Decision{}
	for _, g := range waiting {
		if _, ok := all[g.Ref.Kind]; !ok {
			all[g.Ref.Kind] = view.Decision{Moment: moment, Flow: "controllers", OpenDecision: g, Waits: true, Status: "awaiting_decisions", Purpose: w.text}
		}
	}
	set := func(kind progress.Kind, change func(*view.Decision)) {
		g := all[kind]
		change(&g)
		all[kind] = g
	}
	set(progress.TopicKind, func(g *view.Decision) {
		g.Topic = &progress.Topic{Topic: flow.Topic{Slug: "pagination", Prompt: w.text}, State: progress.Pending}
	})
	set(progress.ItemKind, func(g *view.Decision) { g.Item = &view.ItemDetail{Item: w.decided("i3", "")} })
	batch := w.batch()
	set(progress.ReviewKind, func(g *view.Decision) { g.Review = &batch })
	set(progress.FailureKind, func(g *view.Decision) {
		g.Failure = &progress.CommonFailure{ID: "1a2b3c4d", Parts: []string{w.text, "m.TestX"}, Phase: "test", Command: w.text, Last: w.text, Output: w.path, Batches: []string{w.unit + "/b1", w.path}, At: ago(time.Hour)}
	})
	set(progress.GapKind, func(g *view.Decision) {
		g.Gap = &view.GapDetail{Gap: batch.Gaps[0], Batch: "b1", Title: w.text, Kept: &rescue.Entry{ID: "20260131T090000.123-1b4e28ba"}, Diff: w.diff()}
	})
	other := w.batch()
	other.ID, other.Title, other.After = "b2", "Counts", []string{"b1"}
	set(progress.PlanKind, func(g *view.Decision) {
		g.Plan = &view.PlanDetail{Items: batch.Does, Batches: []view.BatchDetail{batch, other}, Warnings: []string{w.text}, Gone: []progress.DroppedItem{{Ready: flow.Ready{ID: "i9", Description: w.text}, Reason: w.text}}}
	})
	return all
}

func (w words) board(moment view.Moment) view.Board {
	b := view.Board{Moment: moment, Flow: "controllers", Statuses: map[string]int{"complete": 1, "awaiting_decisions": 1, "error": 1, "applying": 1}}
	for _, p := range flow.Controllers().Phases {
		b.Phases = append(b.Phases, view.BoardPhase{Name: p.Name, Executor: string(p.Executor)})
	}
	b.Phases[6].Units = 1
	row := func(name, status string, at int, mark view.Mark) view.BoardUnit {
		u := view.BoardUnit{UnitState: run.UnitState{Name: name, WorkState: run.WorkState{Status: status, Since: ago(9 * time.Minute)}}, Open: map[progress.Kind]int{}}
		for i := range b.Phases {
			switch {
			case i < at:
				u.Cells = append(u.Cells, view.MarkDone)
			case i == at:
				u.Cells = append(u.Cells, mark)
			default:
				u.Cells = append(u.Cells, view.MarkToCome)
			}
		}
		return u
	}
	first := w.ref(progress.ItemKind)
	waits := row(w.unit, "awaiting_decisions", 6, view.MarkPerson)
	waits.Open[progress.ItemKind], waits.First = 4, &first
	fails := row(w.other, "error", 9, view.MarkFailed)
	fails.Error = w.text
	works := row("tags", "applying", 8, view.MarkActive)
	works.Item = "j8"
	works.Batches = []view.BoardBatch{{BatchState: run.BatchState{ID: "b1", WorkState: run.WorkState{Status: "complete"}}, Title: w.text, Mark: view.MarkDone},
		{BatchState: run.BatchState{ID: "b2", WorkState: run.WorkState{Status: "applying", Item: "j8"}}, Title: "Counts", Mark: view.MarkActive},
		{BatchState: run.BatchState{ID: "b3", WorkState: run.WorkState{Status: "queued"}, Blocked: []string{"b2"}}, Mark: view.MarkWaiting}}
	b.Units = []view.BoardUnit{waits, works, fails, row("users", "complete", len(b.Phases), view.MarkDone), row("comments", "ready", 1, view.MarkWaiting)}
	b.Units[4].Phase = "analyze"
	return b
}

func (w words) item(moment view.Moment, act func(name, target string) view.Act, line func(lockkeeper.EventKind, string, time.Duration) view.Line, blocker view.Blocker) view.Item {
	batch := w.batch()
	return view.Item{Moment: moment, State: "running", Since: ago(7 * time.Minute), Flow: "controllers", Unit: w.unit, Kind: "batch", Part: "b1",
		Why: sched.Explanation{Item: lockkeeper.Item{ID: "j8", Workflow: w.unit + "/b1", Phase: "apply", Status: lockkeeper.ItemDispatched, QueuedAt: ago(20 * time.Minute), DispatchedAt: ago(7 * time.Minute), Attempts: 2, Note: w.text, By: lockkeeper.Actor{Name: w.holder},
			Locks: []lockkeeper.Lock{{Target: lockkeeper.Target{Path: w.path, Kind: lockkeeper.File}, Mode: lockkeeper.Write}}}, Attempts: 3, Position: 2},
		Waits: []view.Wait{{Kind: view.WaitLock, Text: w.text, Blocker: &blocker, Since: ago(7 * time.Minute), Left: 300}},
		Log:   &view.Log{Text: w.log, Size: 12_000, From: 4_000, Said: ago(3 * time.Second), Path: ".lockkeeper/calls/x/log"},
		Batch: &batch, Cost: view.Cost{USD: 1.2, Tokens: 40_000, Calls: 2},
		Calls:  []view.Call{w.call().Call},
		Events: []view.Line{line(lockkeeper.EventAcquired, "started", 7*time.Minute)}, Acts: []view.Act{act("cancel", "j8"), {Name: "retry", Target: "j8", Refused: "it runs"}},
		Landings: []view.Landing{w.landing(act)}}
}

// wholeUnit returns a unit with something in each of its lists.
func (w words) wholeUnit(s *scene, act func(name, target string) view.Act) view.Unit {
	row, detail, item := s.board.Units[0], w.batch(), s.item.Why.Item
	return view.Unit{Moment: s.board.Moment, Flow: "controllers", BoardUnit: row, Phases: s.board.Phases,
		Batches:  []view.UnitBatch{{BoardBatch: view.BoardBatch{BatchState: run.BatchState{ID: "b1", WorkState: run.WorkState{Status: "applying", Item: "j8", Error: w.text}}, Title: w.text, Mark: view.MarkActive}, Detail: &detail}},
		Analysis: &flow.Analysis{Purpose: w.text, Behaviour: w.text, Screens: []flow.Served{{Name: w.text, Action: w.path}}, Relations: []flow.Relation{{Controller: w.unit, How: w.text}}, Files: []string{w.path}},
		Topics:   []progress.Topic{{Topic: flow.Topic{Slug: "pagination", Prompt: w.text}, State: progress.Pending}, {Topic: flow.Topic{Slug: "offsets", Prompt: w.text}, State: progress.Done, Text: w.text, By: w.holder}},
		Items:    []progress.Item{w.decided("i3", flow.Todo), w.decided("i4", "")}, Gone: []progress.DroppedItem{{Ready: flow.Ready{ID: "i9", Description: w.text}, Reason: w.text}}, Approved: &flow.Approval{By: w.holder, At: ago(time.Hour)},
		Warnings: []string{w.text}, Questions: []progress.Question{{ID: "question-1", Text: w.text, By: w.holder, At: ago(time.Hour), Answer: w.text}}, Decisions: s.queue.Open[:1],
		Work:  []view.UnitWork{{ListedItem: view.ListedItem{Item: &item, State: "blocked", Name: w.unit + "/b1"}, Waits: s.item.Waits, Waited: 30, Took: 7}},
		Calls: []view.UnitCall{{Call: w.call().Call, Item: "j8", Name: w.unit + "/b1"}}, More: 2, Landings: []view.Landing{w.landing(act)}, Cost: view.Cost{USD: 1.2, Tokens: 40_000, Calls: 2},
		Spent: []view.PhaseCost{{Phase: "apply", USD: 1.2, Calls: 2, Took: 240}}}
}

func (w words) call() view.CallDetail {
	call := flow.Call{Agent: "claude", Phase: "apply", Model: "opus", USD: 0.7, Tokens: 20_000, Turns: 12, Began: ago(7 * time.Minute), Took: 4 * time.Minute, Error: w.text}
	return view.CallDetail{Call: view.Call{PastCall: run.PastCall{Call: call}, Number: 1}, Item: "j8", Name: w.unit + "/b1", Command: "lockkeeper job output j8 --prompt --call 1",
		Log: &view.Log{Text: w.log, Size: 80, Path: ".lockkeeper/calls/x/livelog"}, Prompt: &view.Log{Text: w.text, Next: 80, Size: 12_000, Path: ".lockkeeper/calls/x/output.prompt"}, Answer: w.text, Output: &view.Log{Text: w.log, Next: 80, Size: 80, Path: ".lockkeeper/calls/x/output"}}
}

func (w words) landing(act func(name, target string) view.Act) view.Landing {
	return view.Landing{Seq: 4650, At: ago(time.Minute), Holder: w.holder, Name: w.unit, Batch: "b1", State: "committed", Paths: []string{w.path}, Commit: "0123456789abcdef", Undo: act("undo", "4650")}
}

func (w words) locks(moment view.Moment, act func(name, target string) view.Act) view.Locks {
	standing := func(id, name, state string, d time.Duration) view.LockStatus {
		until := noon.Add(20 * time.Minute)
		return view.LockStatus{Holding: view.Holding{RequestInfo: lock.RequestInfo{GrantSnapshot: lockkeeper.GrantSnapshot{ID: id, Holder: name, AcquiredAt: ago(d), ExpiresAt: &until}, State: state}, Liveness: "alive"}, Name: name, Item: "j7",
			Locks: []view.PathLock{{Path: w.path, Mode: lockkeeper.Write}, {Path: "config/routes.rb", Mode: lockkeeper.Read}}, Acts: []view.Act{act("force-release", id)}}
	}
	stale := standing("g3", w.holder, "held", 3*time.Hour)
	stale.Stale, stale.Liveness, stale.Conditions = true, "dead", []lockkeeper.Condition{{Name: "lease_over", Held: true, Fact: w.text}, {Name: "no_heartbeat", Held: false, Fact: "3 minutes ago"}}
	waits := standing("g2", w.unit+"/b2", "waiting", 7*time.Minute)
	waits.Conflicts = []lockkeeper.ConflictInfo{{Path: w.path, Mode: lockkeeper.Write, Kind: lockkeeper.Held, Holder: w.other, AcquiredAt: ago(9 * time.Minute)}}
	l := view.Locks{Moment: moment, Held: []view.LockStatus{standing("g1", w.other+"/b1", "held", 9*time.Minute)}, Stale: []view.LockStatus{stale}, Waiting: []view.LockStatus{waits},
		Queued:    []view.QueuedWait{{Item: "j9", Name: "tags/b1", Phase: "apply", Since: ago(5 * time.Minute), Escalated: true, Behind: []view.Blocker{{Name: w.other + "/b1", Item: "j7", Path: w.path}}}},
		Tree:      []view.WaitNode{{ID: "g1", Name: w.other + "/b1", State: "held", Since: ago(9 * time.Minute), Behind: []view.WaitNode{{ID: "g2", Name: w.unit + "/b2", State: "waiting", Path: w.path, Since: ago(7 * time.Minute), Behind: []view.WaitNode{{ID: "j9", Name: "tags/b1", State: "queued", Path: w.path, Since: ago(5 * time.Minute)}}}}}},
		Graph:     view.Graph{Nodes: []view.GraphNode{{ID: "g1", Name: w.other + "/b1", State: "held", Item: "j7"}, {ID: "g2", Name: w.unit + "/b2", State: "waiting"}, {ID: "j9", Name: "tags/b1", State: "queued", Item: "j9"}, {ID: "g3", Name: w.holder, State: "stale"}, {ID: "j10", Name: "users/b4", State: "queued", Item: "j10"}}},
		Writers:   []view.Writer{{Path: w.path, Name: w.unit, Holder: w.holder, Landing: 4650, At: ago(time.Minute), Held: "g1"}},
		Resources: []view.Resource{{Resource: w.text, Instance: w.holder, Mode: "write", Since: ago(16 * time.Minute), Minutes: 16, Stale: true}}}
	l.Graph.Edges = []view.GraphEdge{{From: "g2", To: "g1", Path: w.path}, {From: "j9", To: "g2", Path: w.path}, {From: "j9", To: "g1", Path: w.path}, {From: "j10", To: "g3", Path: w.path}, {From: "j10", To: "g1", Path: w.path}}
	return l
}

func (w words) timeline(moment view.Moment) view.Timeline {
	t := view.Timeline{Moment: moment, Sort: "name", From: ago(time.Hour), To: noon, Began: ago(3 * time.Hour), Over: noon}
	part := func(what view.Activity, from, to time.Duration) view.Interval {
		return view.Interval{What: what, Began: ago(from), Over: ago(to), Item: "j8", Phase: "apply", Text: w.text, USD: 0.2}
	}
	const m = time.Minute
	for i, name := range []string{w.unit + "/b1", w.other + "/b1", "tags/b1", "users/b2", "comments/b1"} {
		o := time.Duration(i) * 4 * m
		t.Lanes = append(t.Lanes, view.Lane{Work: name, Unit: name, Waited: 780, Worked: 1260, USD: 1.2, Landings: 1,
			Totals: map[view.Activity]view.Seconds{view.ActivityQueued: 360, view.ActivityBlocked: 420, view.ActivityAgent: 900, view.ActivityCheck: 240, view.ActivityLanding: 120}, Stretches: []view.Interval{part(view.ActivityQueued, 58*m-o, 52*m-o), part(view.ActivityBlocked, 52*m-o, 45*m-o), part(view.ActivityAgent, 45*m-o, 30*m-o), part(view.ActivityCheck, 30*m-o, 26*m-o), part(view.ActivityLanding, 26*m-o, 24*m-o), part(view.ActivityLanded, 24*m-o, 24*m-o)}})
	}
	t.Lanes[4].Stretches = append(t.Lanes[4].Stretches, view.Interval{What: view.ActivityAgent, Began: ago(3 * m), Open: true, Item: "j11"})
	t.Busy = []view.BusyPoint{{At: ago(50 * m), Agents: 1}, {At: ago(40 * m), Agents: 3}, {At: ago(22 * m), Agents: 5}, {At: ago(12 * m), Agents: 2}}
	t.Waits = []view.LockWait{{Work: w.unit + "/b1", Item: "j8", Behind: []string{w.other, "tags"}, Paths: []string{w.path}, Began: ago(52 * m), Took: 420, Open: true}}
	return t
}

func (w words) run(moment view.Moment, act func(name, target string) view.Act) view.Run {
	r := view.Run{Moment: moment, Line: view.RunLine{State: view.RunActive, Flow: "controllers", Began: ago(3 * time.Hour), Conductor: w.holder, Units: 120, Complete: 61, Failed: 2},
		Cost: view.Cost{USD: 31.04, Tokens: 12_345_678, Calls: 210, BudgetUSD: 50, RestUSD: 38, TotalUSD: 69}, Landings: []view.Landing{w.landing(act)},
		Refused: []view.RefusedWrite{{At: ago(time.Hour), Path: w.path, Name: w.unit, Reason: w.text, Rescue: "20260131T090000.123-1b4e28ba", Kept: true}}}
	cost := report.Cost{USD: 12.5, Tokens: 99_000, Calls: 40, Failed: 1, Took: 2 * time.Hour}
	r.Report = &report.Report{Flow: "controllers", Cost: cost, RunCost: cost, Phases: []report.PhaseCost{{Phase: "analyze", Cost: cost}, {Phase: "apply", Cost: cost}}, Decisions: report.DecisionCount{Todo: 40, Defer: 12, Reject: 9, Open: 37},
		Units:    []report.Unit{{Name: w.unit, Status: "complete", Cost: cost, Batches: []report.Batch{{ID: "b1", Title: w.text, Status: "complete", Files: []string{w.path}, Fixes: 2, Landed: &flow.Landed{Undone: &flow.Approval{By: w.holder}}}}}},
		Failures: []report.Failure{{Item: "j9", Work: w.unit + "/b2", Phase: "test", Reason: w.text, At: ago(time.Hour)}},
		Rechecks: []report.Recheck{{Unit: w.unit, Batch: "b1", Recheck: flow.Recheck{Moved: []string{w.path}, At: ago(time.Hour)}}},
		Times:    report.Times{Busy: 3 * time.Hour, Agents: 7.4, Most: 12, Queued: 50 * time.Minute, Blocked: 14 * time.Minute}}
	return r
}

func (w words) nodes(moment view.Moment) view.Nodes {
	return view.Nodes{Moment: moment, Root: "/srv/" + w.path, Space: "0b1e28ba", Store: "SQLite", Deployment: "one machine", Version: "0.6.0", Self: w.holder,
		Machines:    []view.Machine{{Name: w.holder, Self: true, Grants: 3, Workers: []view.Worker{{Worker: lockkeeper.Worker{ID: "w1", Node: w.holder, Slots: 12, Began: ago(3 * time.Hour)}, Liveness: "alive", Items: []string{"j7", "j8"}}}}, {Name: "badger"}},
		Enforcement: view.Enforcement{Mode: "auto", Level: "sandbox", Protections: []view.Protection{{Name: "an agent of a run", Level: "enforced", Fact: "it writes in a copy, in a sandbox"}, {Name: "git commit", Level: "detected", Fact: "the hook looks"}, {Name: "an editor", Level: "advisory", Fact: w.text}}},
		Checks:      []view.Check{{Name: "landlock", OK: true, Fact: "version 4"}, {Name: "git hook", OK: false, Fact: "not installed", Next: "lockkeeper hook install"}},
		Slots:       []view.Slots{{Pool: "agent", Taken: 12, Limit: 12}}}
}

// finished returns a codebase with a run that succeeded.
func finished() *scene {
	s := middle(usual)
	s.now.Run.State, s.now.Run.Ended, s.now.Run.Complete, s.now.Run.Failed, s.now.Run.Conductor = view.RunEnded, ago(time.Minute), 120, 0, ""
	s.now.Needs, s.now.Stuck, s.now.Failed = view.Needs{}, nil, nil
	s.queue.Open, s.queue.Conductor = nil, ""
	s.locks = view.Locks{Moment: s.locks.Moment}
	s.item.State, s.item.Why.Item.Status, s.item.Waits = "completed", lockkeeper.ItemCompleted, nil
	s.item.Why.Item.CompletedAt = ago(time.Minute)
	s.item.Batch.Landed = &flow.Landed{At: ago(time.Minute), Commit: "0123456789abcdef"}
	return s
}

// failed returns a codebase with an interrupted run, failed work and unreadable documents.
func failed() *scene {
	s := middle(usual)
	s.now.Run.State, s.now.Run.Conductor, s.now.Run.Next = view.RunInterrupted, "", "lockkeeper run"
	s.now.Cost.Exhausted, s.now.Changes.Forgotten = true, true
	s.queue.Conductor = ""
	s.queue.Unread = []view.UnreadUnit{{Unit: "tags", Reason: "permission denied"}}
	s.board.Units[0].Unread, s.board.Units[1].Malformed = "permission denied", []progress.Malformed{{Path: "tags/analysis.json", Line: 3, Reason: "not JSON"}}
	s.item.State, s.item.Why.Item.Status = "failed", lockkeeper.ItemError
	s.item.Why.Item.Failure = &lockkeeper.Failure{Phase: "test", Reason: "three attempts failed", Waited: time.Minute}
	s.item.Failed, s.item.Lost = &view.FailedDependency{Item: "j3", Name: "posts/b1", Reason: "its tests failed"}, true
	s.item.Acts = slices.Insert(s.item.Acts, 0, view.Act{Name: "retry", Target: "j8", Command: "lockkeeper job retry j8"})
	s.item.Log = nil
	s.rescue.Problem = "an entry is damaged"
	s.timeline.Forgotten = true
	return s
}
