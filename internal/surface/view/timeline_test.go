package view

import (
	"fmt"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow/run"
)

// The timeline shows why work waits, and what it does while it holds its locks. It knows this from the events,
// the calls, and the time at which a call began to wait for its slot.
func TestTimelineTellsWaitsApart(t *testing.T) {
	noon := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	at := func(m int) time.Time { return noon.Add(time.Duration(m) * time.Minute) }
	d := newTimeline()
	d.from, d.to = noon, at(60)
	item := func(id, work string, queued, ended int, after ...string) *lockkeeper.Item {
		it := &lockkeeper.Item{ID: id, Workflow: work, Unit: "batch", QueuedAt: at(queued), After: after, Status: lockkeeper.ItemCompleted, Stage: lockkeeper.StageEnded, CompletedAt: at(ended)}
		d.items[id] = it
		d.since[id] = d.label(it, Interval{What: ActivityQueued, Began: it.QueuedAt})
		return it
	}
	item("j1", "a/b1", 0, 30)
	item("j2", "a/b2", 0, 50, "j1")
	item("j3", "c/b1", 0, 55)
	waits := item("j4", "d/b1", 40, 60)
	waits.Status, waits.Stage, waits.CompletedAt = lockkeeper.ItemDispatched, lockkeeper.StageWaiting, time.Time{}
	for _, it := range d.items {
		d.follow(it)
	}
	event := func(m int, kind lockkeeper.EventKind, id, grant string, blockers ...string) {
		ev := lockkeeper.Event{At: at(m), Kind: kind, Holder: id, GrantID: grant}
		for _, b := range blockers {
			ev.Conflicts = append(ev.Conflicts, lockkeeper.ConflictInfo{GrantID: b, Holder: b, BlockingPath: "x"})
		}
		d.see(ev)
	}
	event(2, lockkeeper.EventAcquired, "j1", "g1")
	event(4, lockkeeper.EventBlocked, "j3", "", "g1", "g0")
	event(6, lockkeeper.EventReleased, "other", "g0")
	event(28, lockkeeper.EventLanded, "j1", "g1")
	event(30, lockkeeper.EventReleased, "j1", "g1")
	event(33, lockkeeper.EventAcquired, "j2", "g2")
	event(35, lockkeeper.EventAcquired, "j3", "g3")
	event(41, lockkeeper.EventAcquired, "j4", "g4")
	event(50, lockkeeper.EventReleased, "j2", "g2")
	event(55, lockkeeper.EventRecovered, "j3", "g3")
	call := func(id, work, phase string, asked, began, ended int) {
		e := run.CallRecord{Item: id, Trace: run.Trace{Work: work, Phase: phase, Began: at(began), Ended: at(ended)}, Checked: phase == "test"}
		if e.Asked = at(asked); phase != "test" {
			e.Call = &run.PastCall{}
			e.Call.USD = 0.5
		}
		d.trace(e)
	}
	call("j1", "a/b1", "apply", 5, 10, 20)
	call("j1", "a/b1", "test", 21, 23, 26)
	call("j2", "a/b2", "apply", 34, 34, 48)
	call("j3", "c/b1", "apply", 36, 37, 40)
	tl := d.finish(Moment{At: at(60)})
	want := []string{
		"a/b1 queued 0-2, preparing 2-5, queued 5-10, agent 10-20, preparing 20-21, queued 21-23, check 23-26, landing 26-30, landed 28-28; 9 waited, 21 worked, 0.5, 1",
		"a/b2 after 0-30, queued 30-33, preparing 33-34, agent 34-48, preparing 48-50; 33 waited, 17 worked, 0.5, 0",
		"c/b1 queued 0-4, blocked 4-30, queued 30-35, preparing 35-36, queued 36-37, agent 37-40; 36 waited, 4 worked, 0.5, 0", // its process was gone after 40
		"d/b1 queued 40-41, queued 41-60; 20 waited, 0 worked, 0, 0",
	}
	for i, lane := range tl.Lanes {
		got := lane.Work
		for n, s := range lane.Stretches {
			if n > 0 {
				got += ","
			}
			got += fmt.Sprintf(" %s %v-%v", s.What, s.Began.Sub(noon).Minutes(), s.Over.Sub(noon).Minutes())
		}
		got += fmt.Sprintf("; %v waited, %v worked, %v, %d", lane.Waited/60, lane.Worked/60, lane.USD, lane.Landings)
		if i >= len(want) || got != want[i] {
			t.Errorf("%s", got)
		}
	}
	if len(tl.Lanes) != len(want) || len(tl.Waits) != 1 || tl.Waits[0].Took != 26*60 || tl.Waits[0].Open {
		t.Errorf("%d lanes, waits %+v", len(tl.Lanes), tl.Waits)
	}
	order := func(q TimelineQuery) (got string) {
		for _, l := range q.lanes(tl.Lanes) {
			got += l.Work + " "
		}
		return got
	}
	for _, test := range []struct {
		TimelineQuery
		want string
	}{{TimelineQuery{}, "a/b1 a/b2 c/b1 d/b1 "}, {TimelineQuery{Sort: "waited"}, "c/b1 a/b2 d/b1 a/b1 "}, {TimelineQuery{Sort: "time", Text: "A/"}, "a/b1 a/b2 "}, {TimelineQuery{Sort: "cost"}, "a/b1 a/b2 c/b1 d/b1 "}} {
		if got := order(test.TimelineQuery); got != test.want {
			t.Errorf("%+v: %s", test.TimelineQuery, got)
		}
	}
}
