package view_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/job"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/surface/view"
	"lockkeeper/sched"
)

// pages returns every query that needs only a codebase.
func (s *scene) pages(ctx context.Context) map[string]func() (any, error) {
	return map[string]func() (any, error){
		"state":    func() (any, error) { return s.look.State(ctx) },
		"now":      func() (any, error) { return s.look.Now(ctx, 0) },
		"changes":  func() (any, error) { return s.look.Now(ctx, 3) },
		"queue":    func() (any, error) { return s.look.Decisions(ctx, "") },
		"board":    func() (any, error) { return s.look.Board(ctx, "") },
		"locks":    func() (any, error) { return s.look.Locks(ctx) },
		"timeline": func() (any, error) { return s.look.Timeline(ctx, view.TimelineQuery{}) },
		"run":      func() (any, error) { return s.look.Run(ctx, "") },
		"landings": func() (any, error) { return s.look.Landings(ctx, view.LandingsQuery{}) },
		"rescue":   func() (any, error) { return s.look.Rescue(ctx) },
		"nodes":    func() (any, error) { return s.look.Nodes(ctx) },
		"audit":    func() (any, error) { return s.look.Audit(ctx, view.AuditQuery{}) },
		"items":    func() (any, error) { return s.look.Items(ctx, view.ItemsQuery{}) },
	}
}

// whole runs every query and checks that no list in a result is null.
func (s *scene) whole() {
	s.t.Helper()
	for name, ask := range s.pages(s.t.Context()) {
		v, err := ask()
		if err != nil {
			s.t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := json.Marshal(v); err != nil {
			s.t.Errorf("%s: %v", name, err)
		}
		noNull(s.t, name, reflect.ValueOf(v))
	}
}

// noNull reports lists and maps in a result that JSON would encode as null.
func noNull(t testing.TB, where string, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			noNull(t, where, v.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := range min(v.Len(), 3) {
			noNull(t, fmt.Sprintf("%s[%d]", where, i), v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			noNull(t, where+"."+key.String(), v.MapIndex(key))
		}
	case reflect.Struct:
		if !strings.HasSuffix(v.Type().PkgPath(), "internal/surface/view") {
			return
		}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !f.IsExported() || name == "-" {
				continue
			}
			kind := v.Field(i).Kind()
			if (kind == reflect.Slice || kind == reflect.Map) && v.Field(i).IsNil() && option != "omitempty" {
				t.Errorf("%s.%s is null", where, f.Name)
			}
			noNull(t, where+"."+f.Name, v.Field(i))
		}
	}
}

// Every query works in a codebase without any events.
func TestNothingEverHappened(t *testing.T) {
	s := newScene(t, "")
	s.whole()
	st, err := s.look.State(t.Context())
	must(t, err)
	if st.Phase != "idle" || len(st.Controllers) != 0 || st.Locks.QueueDepth != 0 {
		t.Errorf("the state is %+v", st)
	}
	n, err := s.look.Now(t.Context(), 0)
	must(t, err)
	if n.Run.State != view.RunNone || n.Run.Next != "lockkeeper run --flow controllers" && n.Run.Next != "lockkeeper run" || n.Needs.Total != 0 || len(n.Stuck) != 0 {
		t.Errorf("now is %+v", n)
	}
	nodes, err := s.look.Nodes(t.Context())
	must(t, err)
	commits := slices.IndexFunc(nodes.Enforcement.Protections, func(w view.Protection) bool { return w.Name == "commits of git" })
	if fact := nodes.Enforcement.Protections[commits].Fact; fact != "this is not a git repository" {
		t.Errorf("of commits it says: %s", fact)
	}
	for what, err := range map[string]error{
		"item":    last(s.look.Item(t.Context(), "j1")),
		"log":     last(s.look.ItemLog(t.Context(), "j1", 0)),
		"rescued": last(s.look.Rescued(t.Context(), "20260131T090000.123-1b4e28ba")),
		"gate":    last(s.look.Decision(t.Context(), "", progress.Ref{Kind: progress.PlanKind, Unit: "x"})),
		"flow":    last(s.look.Board(t.Context(), "unknown")),
		"audit":   last(s.look.Audit(t.Context(), view.AuditQuery{Kinds: []string{"unknown"}})),
		"path":    last(s.look.Audit(t.Context(), view.AuditQuery{Path: "../elsewhere"})),
	} {
		if lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("unknown %s: %v", what, err)
		}
	}
}

func last[T any](_ T, err error) error { return err }

// Every query works in a codebase with an example of everything.
func TestEverythingAtOnce(t *testing.T) {
	fullScene(t).whole()
}

// In the legacy mode the queue is empty, even if an earlier run left items in it.
// shows: CF-28 PL-73 SW-62
func TestLegacyModeKnowsNoQueue(t *testing.T) {
	s := fullScene(t)
	s.app.Config.Run.Locking = "off"
	s.whole()
	st, err := s.look.State(t.Context())
	must(t, err)
	for name, w := range st.Workflows {
		if w.Status == "queued" || w.Pending != "" {
			t.Errorf("%s is %+v", name, w)
		}
		for id, b := range w.Batches {
			if b.Status == "queued" || b.Pending != "" {
				t.Errorf("%s/%s is %+v", name, id, b)
			}
		}
	}
}

// Every query works for the other flows, too.
func TestOtherFlows(t *testing.T) {
	for _, name := range []string{"screens", "tasks"} {
		t.Run(name, func(t *testing.T) {
			s := sampleScene(t)
			out := s.run(name, "all")
			s.whole()
			b, err := s.look.Board(t.Context(), name)
			must(t, err)
			complete := out.Complete
			if name == "tasks" { // each task counts
				complete = len(out.State.Units[0].Batches)
			}
			if b.Flow != name || len(b.Units) != len(out.State.Units) || b.Run.Complete != complete || b.Run.Failed != out.Failed {
				t.Errorf("the board is %+v, and the run came to %+v", b, out)
			}
			for i, u := range b.Units {
				if want := out.State.Units[i]; u.Name != want.Name || u.Status != want.Status || len(u.Batches) != len(want.Batches) {
					t.Errorf("%s is %+v, want %+v", u.Name, u, want)
				}
			}
			other, err := s.look.Board(t.Context(), "controllers")
			must(t, err)
			if other.Run.State != view.RunNone || other.Statuses["idle"] != len(other.Units) {
				t.Errorf("of the flow that never ran: %+v", other)
			}
		})
	}
}

// The phase of the flow changes from idle to discovering to ready.
// shows: PL-10 PL-79
func TestPhases(t *testing.T) {
	s := newScene(t, "")
	ctx := t.Context()
	s.audited("blog/posts", "Page them")
	want := func(phase string, state view.RunState) {
		t.Helper()
		st, err := s.look.State(ctx)
		must(t, err)
		n, err := s.look.Now(ctx, 0)
		must(t, err)
		if st.Phase != phase || n.Run.State != state {
			t.Errorf("the phase is %s and the run %s, want %s and %s", st.Phase, n.Run.State, phase, state)
		}
	}
	want("idle", view.RunNone)
	_, err := conduct.NewRun(ctx, s.app, "controllers", "")
	must(t, err)
	g, err := conduct.Lease(ctx, s.app, "ada")
	must(t, err)
	want("discovering", view.RunDiscovering)
	q, err := job.Open(s.app)
	must(t, err)
	self, err := process.Self()
	must(t, err)
	w, err := q.Start(ctx, sched.WorkerOptions{Slots: 1, Node: self.Host, Process: &self, Roots: []string{"flow/controllers"}, Only: true,
		Run: func(ctx context.Context, _ *sched.Job) error {
			<-ctx.Done()
			return &sched.LaterError{Reason: "the test is over"}
		}})
	must(t, err)
	want("ready", view.RunWaiting) // the decision on an item is open
	_, err = q.Enqueue(ctx, order("blog/tags", "analyze", "analyze"))
	must(t, err)
	want("ready", view.RunActive)
	must(t, w.Close(), g.Release(ctx))
	want("ready", view.RunInterrupted)
	must(t, conduct.EndRun(ctx, s.app))
	want("ready", view.RunEnded)
}

// A killed conductor no longer counts, even if its lease has not expired.
func TestADeadConductor(t *testing.T) {
	s := newScene(t, "")
	ctx := t.Context()
	_, err := conduct.NewRun(ctx, s.app, "controllers", "")
	must(t, err)
	victim := exec.Command("sleep", "60")
	must(t, victim.Start())
	who, err := process.Identify(victim.Process.Pid)
	must(t, err)
	_, err = s.app.Locks.TryAcquire(ctx, lockkeeper.Request{Holder: "victim", Process: &who, Locks: []lockkeeper.Lock{write(".lockkeeper/conductor")}})
	must(t, err)
	for _, want := range []string{"victim", ""} {
		n, err := s.look.Now(ctx, 0)
		must(t, err)
		if n.Run.Conductor != want {
			t.Errorf("%q conducts, want %q", n.Run.Conductor, want)
		}
		if want != "" {
			must(t, victim.Process.Kill())
			victim.Wait() // returns an error, because the process was killed
		}
	}
}
