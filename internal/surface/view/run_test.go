package view_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/report"
	"lockkeeper/internal/surface/view"
)

// A run that stops for decisions shows them with all details.
// shows: PL-19 PL-94
func TestARunThatWaits(t *testing.T) {
	s := sampleScene(t)
	s.run("controllers", "")
	s.whole()
	ctx := t.Context()
	q, err := s.look.Decisions(ctx, "")
	must(t, err)
	if len(q.Open) == 0 || q.Progress.Open != len(q.Open) || q.Progress.Answered != 0 {
		t.Fatalf("the queue is %+v", q)
	}
	kinds := map[progress.Kind]int{}
	for _, g := range q.Open {
		kinds[g.Ref.Kind]++
		d, err := s.look.Decision(ctx, "", g.Ref)
		must(t, err)
		if !d.Waits || d.Version == "" || d.Version != g.Version || d.Purpose == "" {
			t.Errorf("%s: %+v", g.Ref, d)
		}
	}
	if kinds[progress.TopicKind] == 0 || kinds[progress.ItemKind] == 0 {
		t.Errorf("there wait %v", kinds)
	}
	n, err := s.look.Now(ctx, 0)
	must(t, err)
	if n.Needs.Total != len(q.Open) || n.Run.State != view.RunStopped || n.Cost.USD <= 0 || n.Cost.RestUSD <= 0 || n.Cost.TotalUSD <= n.Cost.USD {
		t.Errorf("now is %+v", n)
	}
	b, err := s.look.Board(ctx, "")
	must(t, err)
	for _, u := range b.Units {
		if u.First == nil || !slices.Contains(u.Cells, view.MarkPerson) {
			t.Errorf("%s is %+v", u.Name, u)
		}
	}
}

// TestAWholeRun checks every view of a complete run, with a refused write and with landings that are undone.
// shows: PL-94 SW-75 SW-84
func TestAWholeRun(t *testing.T) {
	s := sampleScene(t)
	out := s.run("controllers", "impact>=medium,topics=reject")
	s.whole()
	ctx := t.Context()
	b, err := s.look.Board(ctx, "")
	must(t, err)
	if b.Run.Complete != out.Complete || b.Statuses[flow.Complete] != 4 {
		t.Errorf("the board is %+v", b)
	}
	v, err := s.look.Run(ctx, "")
	must(t, err)
	if len(v.Report.Units) != 4 || v.Cost.USD != v.Report.RunCost.USD || v.Cost.Calls != v.Report.RunCost.Calls || len(v.Refused) != 1 || !v.Refused[0].Kept {
		t.Errorf("the run is %+v", v)
	}
	s.landings(v.Landings)
	s.timeline(v)
	s.batchItem()
	s.rescue(v.Refused[0].Rescue)
	s.record()
	s.quiet()
	s.undone()
}

// landings checks that only the last landing on a file can be undone.
func (s *scene) landings(list []view.Landing) {
	s.t.Helper()
	last := map[string]bool{}
	var can, cannot int
	for _, ln := range list { // the newest first
		if ln.Batch == "" || !strings.HasPrefix(ln.Name, ln.Unit) {
			s.t.Errorf("landing %d has no holder: %+v", ln.Seq, ln)
		}
		stood := slices.ContainsFunc(ln.Paths, func(p string) bool { return last[p] })
		if stood == (ln.Undo.Refused == "") {
			s.t.Errorf("landing %d: %+v, although something stands on it: %v", ln.Seq, ln.Undo, stood)
		}
		if ln.Undo.Refused == "" {
			can++
		} else {
			cannot++
		}
		for _, p := range ln.Paths {
			last[p] = true
		}
	}
	if can == 0 || cannot == 0 {
		s.t.Errorf("%d can be undone and %d cannot", can, cannot)
	}
	page, err := s.look.Landings(s.t.Context(), view.LandingsQuery{Limit: 3})
	must(s.t, err)
	got := len(page.Landings)
	for page.Next != 0 {
		page, err = s.look.Landings(s.t.Context(), view.LandingsQuery{Limit: 3, Before: page.Next})
		must(s.t, err)
		got += len(page.Landings)
	}
	if got != len(list) {
		s.t.Errorf("pages have %d landings of %d", got, len(list))
	}
}

// timeline checks that every agent, check and landing is shown, and that a period limits them.
func (s *scene) timeline(v *view.Run) {
	s.t.Helper()
	t, err := s.look.Timeline(s.t.Context(), view.TimelineQuery{})
	must(s.t, err)
	count := map[view.Activity]int{}
	for _, lane := range t.Lanes {
		for _, st := range lane.Stretches {
			count[st.What]++
			if st.Over.Before(st.Began) || st.Began.Before(t.Began) || st.Over.After(t.Over) {
				s.t.Errorf("%s: %+v", lane.Work, st)
			}
		}
	}
	if count[view.ActivityAgent] != v.Report.Cost.Calls || count[view.ActivityLanded] != len(v.Landings) || count[view.ActivityCheck] == 0 || count[view.ActivityPreparing] == 0 || count[view.ActivityLanding] == 0 {
		s.t.Errorf("there are %v, %d calls and %d landings", count, v.Report.Cost.Calls, len(v.Landings))
	}
	for _, w := range t.Waits {
		if w.Open || w.Took <= 0 || len(w.Behind) == 0 || len(w.Paths) == 0 {
			s.t.Errorf("a wait is %+v", w)
		}
	}
	if len(t.Busy) == 0 || t.Busy[len(t.Busy)-1].Agents != 0 {
		s.t.Errorf("busy is %+v", t.Busy)
	}
	whole := t.Over.Sub(t.Began)
	inside, err := s.look.Timeline(s.t.Context(), view.TimelineQuery{From: t.Began.Add(whole * 49 / 100), To: t.Began.Add(whole * 51 / 100)})
	must(s.t, err)
	if !inside.Began.Equal(t.Began) || inside.Over.Before(t.Over) {
		s.t.Errorf("seen through a window the run is from %s to %s, and it is from %s to %s", inside.Began, inside.Over, t.Began, t.Over)
	}
	middle := t.Began.Add(whole / 2)
	part, err := s.look.Timeline(s.t.Context(), view.TimelineQuery{From: middle, To: t.Over})
	must(s.t, err)
	for _, lane := range part.Lanes {
		for _, st := range lane.Stretches {
			if st.Over.Before(middle) {
				s.t.Errorf("before the window: %s %+v", lane.Work, st)
			}
		}
	}
}

// batchItem checks that the item of a batch has everything that its page shows.
func (s *scene) batchItem() {
	s.t.Helper()
	ctx := s.t.Context()
	list, err := s.look.Items(ctx, view.ItemsQuery{Limit: 5})
	must(s.t, err)
	seen := map[string]bool{}
	for {
		for _, it := range list.Items {
			seen[it.ID] = true
		}
		if list.Next == 0 {
			break
		}
		list, err = s.look.Items(ctx, view.ItemsQuery{Limit: 5, After: list.Next})
		must(s.t, err)
	}
	if len(seen) != list.Queue.Completed {
		s.t.Errorf("pages have %d items of %d", len(seen), list.Queue.Completed)
	}
	it, err := s.look.Item(ctx, "blog/posts/b1")
	must(s.t, err)
	if it.State != "completed" || it.Unit != "blog/posts" || it.Part != "b1" || it.Batch == nil || it.Batch.Diff.Added == 0 || it.Batch.Tested == nil || it.Batch.CI == nil ||
		len(it.Calls) == 0 || it.Cost.USD <= 0 || len(it.Events) == 0 || len(it.Landings) == 0 || it.Log == nil || it.Log.Text == "" {
		s.t.Errorf("the item is %+v", it)
	}
	for _, f := range it.Batch.Diff.Files {
		if f.Note != "" || !strings.Contains(f.Text, "@@") || f.Added+f.Removed == 0 {
			s.t.Errorf("a file of the diff is %+v", f)
		}
	}
	rest, err := s.look.ItemLog(ctx, it.Why.Item.ID, it.Log.Next)
	must(s.t, err)
	if rest.Text != "" || rest.Next != it.Log.Size {
		s.t.Errorf("behind the end of the log there is %+v", rest)
	}
	analysis, err := s.look.Item(ctx, "controllers/blog%2Fposts/analyze")
	must(s.t, err)
	if analysis.Kind != "controller" || analysis.Batch != nil || len(analysis.Calls) != 1 {
		s.t.Errorf("the analysis is %+v", analysis)
	}
	call, err := s.look.Call(ctx, analysis.Why.Item.ID, 1)
	must(s.t, err)
	if call.Open || call.Prompt == nil || !strings.HasPrefix(call.Prompt.Text, "# analyze blog/") || !strings.HasPrefix(call.Answer, "{") || !strings.Contains(call.Answer, `"purpose"`) || call.Output == nil || call.Output.Next != call.Output.Size {
		s.t.Errorf("the call is %+v", call)
	}
	for _, wrong := range []int{0, -1, 2} {
		if call, err := s.look.Call(ctx, analysis.Why.Item.ID, wrong); wrong != 0 && lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			s.t.Errorf("call %d is %+v, %v", wrong, call, err)
		}
	}
}

// rescue checks that a refused write is kept, with its diff and its gap.
func (s *scene) rescue(id string) {
	s.t.Helper()
	all, err := s.look.Rescue(s.t.Context())
	must(s.t, err)
	at := slices.IndexFunc(all.Entries, func(k view.RescueEntry) bool { return k.ID == id })
	if at < 0 || all.Entries[at].Ref == nil || all.Kinds["gap"] == 0 {
		s.t.Fatalf("kept is %+v", all)
	}
	d, err := s.look.Rescued(s.t.Context(), id)
	must(s.t, err)
	if d.Diff == nil || d.Diff.Files[0].Text == "" || d.Next == "" || d.Content == "" {
		s.t.Errorf("the entry is %+v", d)
	}
	gap, err := s.look.Decision(s.t.Context(), "", *all.Entries[at].Ref)
	must(s.t, err)
	if gap.Gap == nil || gap.Gap.Kept == nil || gap.Gap.Diff.Files[0].Text != d.Diff.Files[0].Text {
		s.t.Errorf("the gap is %+v", gap.Gap)
	}
	must(s.t, s.app.Shelf().Drop(id))
	if all, err = s.look.Rescue(s.t.Context()); err != nil || slices.ContainsFunc(all.Entries, func(k view.RescueEntry) bool { return k.ID == id }) {
		s.t.Errorf("what was dropped is still shown: %v", err)
	}
}

// record checks that the event log can be searched in pages.
func (s *scene) record() {
	s.t.Helper()
	ctx := s.t.Context()
	for what, q := range map[string]view.AuditQuery{
		"kind": {Kinds: []string{"landed"}}, "who": {Who: "blog/posts/b1"}, "text": {Text: "AUTHENTICATION.RB"}, "path": {Path: "app/controllers/concerns/authentication.rb"},
		"since": {Since: time.Now().Add(-time.Hour), Until: time.Now().Add(time.Hour)},
	} {
		q.Limit = 7
		var all []view.Line
		for more := true; more; {
			page, err := s.look.Audit(ctx, q)
			must(s.t, err)
			all = append(all, page.Lines...)
			q.Before, more = page.Next, page.Next != 0
		}
		if len(all) == 0 {
			s.t.Errorf("nothing was found by %s", what)
		}
		for i, line := range all {
			if i > 0 && all[i-1].Seq <= line.Seq {
				s.t.Errorf("%s: event %d comes behind %d", what, line.Seq, all[i-1].Seq)
			}
			if what == "kind" && line.Kind != lockkeeper.EventLanded || what == "who" && line.Name != q.Who {
				s.t.Errorf("%s: found %+v", what, line)
			}
		}
	}
}

// quiet checks that the audit trail leaves out the locks of documents that came and went, unless a
// query asks for them.
func (s *scene) quiet() {
	s.t.Helper()
	count := func(q view.AuditQuery) (documents, all int) {
		s.t.Helper()
		q.Limit = 1_000
		page, err := s.look.Audit(s.t.Context(), q)
		must(s.t, err)
		for _, line := range page.Lines {
			if line.Kind == lockkeeper.EventAcquired && !slices.ContainsFunc(line.Locks, func(l lockkeeper.Lock) bool { return !strings.HasPrefix(l.Path, ".") }) {
				documents++
			}
			if !page.Hidden && strings.Contains(line.Text, "internal lock") {
				s.t.Errorf("a complete line is %s", line.Text)
			}
		}
		return documents, len(page.Lines)
	}
	some, fewer := count(view.AuditQuery{})
	every, all := count(view.AuditQuery{Internal: true})
	if some != 0 || every == 0 || all-fewer < 2*every {
		s.t.Errorf("%d of %d locks of documents are listed in %d of %d lines", some, every, fewer, all)
	}
	if own, _ := count(view.AuditQuery{Path: ".pipeline"}); own == 0 {
		s.t.Error("a query by path misses locks of documents")
	}
	if page, err := s.look.Audit(s.t.Context(), view.AuditQuery{Text: "internal lock"}); err != nil || len(page.Lines) == 0 || len(page.Lines[0].Shown) == len(page.Lines[0].Locks) {
		s.t.Errorf("no line counts its internal locks: %v", err)
	}
}

// undone checks that undone landings are shown as undone.
func (s *scene) undone() {
	s.t.Helper()
	ctx := s.t.Context()
	page, err := s.look.Landings(ctx, view.LandingsQuery{Limit: 1})
	must(s.t, err)
	ln := page.Landings[0]
	door, err := s.app.Gate()
	must(s.t, err)
	req := lockkeeper.Request{Holder: "ada"}
	for _, path := range ln.Paths {
		req.Locks = append(req.Locks, write(path))
	}
	g, err := s.app.Locks.TryAcquire(ctx, req)
	must(s.t, err)
	back, err := door.Undo(ctx, &g.Grant, ln.Seq)
	must(s.t, err, g.Release(ctx))
	page, err = s.look.Landings(ctx, view.LandingsQuery{Limit: 2})
	must(s.t, err)
	if page.Landings[0].Seq != back.Seq || page.Landings[0].Undoes != ln.Seq || page.Landings[1].UndoneBy != back.Seq || page.Landings[1].Undo.Refused == "" {
		s.t.Errorf("after an undo: %+v", page.Landings)
	}
}

// An active run shows which items run, which are blocked and by whom, and which agents are silent.
// shows: SW-84 PL-94
func TestARunUnderWay(t *testing.T) {
	s := newScene(t, "agent: {stall_after: 1s}\nlock_timeout: 1s\n")
	ctx := t.Context()
	_, err := conduct.NewRun(ctx, s.app, "controllers", "")
	must(t, err)
	_, u := s.planned("blog/users", "Throttle", "Log")
	items := s.work(1, 1, batchOrder(u, "b1", write("app/a.rb")), batchOrder(u, "b2", write("app/a.rb")))
	dir := filepath.Join(s.root, ".lockkeeper/calls/controllers%2Fblog%2Fusers%2Fb1%2Fapply@1/1")
	must(t, os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "item"), []byte(items[0].ID), 0o600), os.WriteFile(filepath.Join(dir, "workspace"), nil, 0o600),
		os.WriteFile(filepath.Join(dir, "log"), []byte("thinking <b>hard</b>\n"), 0o600))
	old := time.Now().Add(-10 * time.Minute)
	must(t, os.Chtimes(filepath.Join(dir, "log"), old, old))
	s.whole()
	n, err := s.look.Now(ctx, 0)
	must(t, err)
	if at := slices.IndexFunc(n.Stuck, func(st view.Stuck) bool { return st.Kind == view.StuckSilent }); at < 0 || n.Stuck[at].Item != items[0].ID || n.Stuck[at].Name != "blog/users/b1" {
		t.Errorf("stuck are %+v", n.Stuck)
	}
	if n.Slots[0].Taken != 1 || n.Queued != 1 || n.Blocked != 1 {
		t.Errorf("now is %+v", n)
	}
	running, err := s.look.Item(ctx, items[0].ID)
	must(t, err)
	if running.State != "running" || running.Worker == nil || running.Grant == nil || running.Log == nil || !running.Log.Silent || running.Log.Text != "thinking <b>hard</b>\n" {
		t.Errorf("the running one is %+v", running)
	}
	if len(running.Calls) != 1 || !running.Calls[0].Open || !running.Calls[0].Running {
		t.Errorf("its calls are %+v", running.Calls)
	}
	r, err := s.look.Run(ctx, "controllers")
	must(t, err)
	unit := slices.IndexFunc(r.Report.Units, func(u report.Unit) bool { return u.Name == "blog/users" })
	if b := r.Report.Units[unit].Batches; b[0].Status == flow.Queued || b[1].Status != flow.Queued {
		t.Errorf("the batches of the run are %+v", b)
	}
	blocked, err := s.look.Item(ctx, items[1].ID)
	must(t, err)
	if blocked.State != "blocked" || len(blocked.Waits) != 1 || blocked.Waits[0].Kind != view.WaitLock || blocked.Waits[0].Blocker.Item != items[0].ID {
		t.Errorf("the blocked one is %+v", blocked)
	}
	row := s.row("blog/users")
	if row.Batches[0].Mark != view.MarkActive || row.Batches[1].Mark != view.MarkQueued || row.Phase != "apply" || !slices.Contains(row.Cells, view.MarkActive) {
		t.Errorf("the row is %+v", row)
	}
	tl, err := s.look.Timeline(ctx, view.TimelineQuery{})
	must(t, err)
	if len(tl.Waits) != 1 || !tl.Waits[0].Open || tl.Waits[0].Behind[0] != "blog/users/b1" {
		t.Errorf("the waits are %+v", tl.Waits)
	}
}
