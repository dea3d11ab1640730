package view

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"lockkeeper"
	"lockkeeper/internal/flow/fleet"
	"lockkeeper/internal/flow/run"
	"lockkeeper/sched"
	"lockkeeper/store"
)

// laneMemory keeps an item in the same lane as long as it has a slot.
type laneMemory struct {
	mu    sync.Mutex
	items map[string][]string // the items in the lanes of a pool of a machine; "" for a free one
}

// place puts items into the lanes of a pool of a machine. The result has an index into items for each
// lane, or -1 for a free one. The function want returns the number of the lane that an item needs, as a
// test does that has a numbered slot, or 0 for any.
func (m *laneMemory) place(pool string, limit int, items []*lockkeeper.Item, want func(*lockkeeper.Item) int) []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.items == nil {
		m.items = map[string][]string{}
	}
	lanes, last := make([]int, max(limit, len(items))), m.items[pool]
	for i := range lanes {
		lanes[i] = -1
	}
	var left []int
	for i, it := range items {
		at := slices.Index(last, it.ID)
		if n := want(it); n > 0 {
			at = n - 1
		}
		if at < 0 || at >= len(lanes) || lanes[at] >= 0 {
			left = append(left, i)
			continue
		}
		lanes[at] = i
	}
	for _, i := range left {
		lanes[slices.Index(lanes, -1)] = i
	}
	now := make([]string, len(lanes))
	for at, i := range lanes {
		if i >= 0 {
			now[at] = items[i].ID
		}
	}
	m.items[pool] = now
	return lanes
}

// A slotGroup is the slots of one pool on one machine, with the items that use them.
type slotGroup struct {
	pool, machine string
	limit         int
	stops         bool
	items         []*lockkeeper.Item
}

// slotGroups lists the slots by pool and machine.
func (s *snapshot) slotGroups(machines []fleet.Machine) (list []*slotGroup) {
	machines = slices.DeleteFunc(slices.Clone(machines), func(m fleet.Machine) bool { return m.Gone })
	if len(machines) < 2 {
		machines = nil
	}
	for _, pool := range []string{sched.PoolAgent, sched.PoolTest} {
		here := &slotGroup{pool: pool}
		if len(machines) == 0 {
			at := slices.IndexFunc(s.slots, func(of Slots) bool { return of.Pool == pool })
			here.limit = s.slots[at].Limit
		}
		others := []*slotGroup{}
		for _, m := range machines {
			one := &slotGroup{pool: pool, machine: m.Name, limit: m.Slots(pool), stops: m.Stops}
			if m.Conducts {
				here = one
			} else {
				others = append(others, one)
			}
		}
		for _, it := range s.active {
			if it.Stage != lockkeeper.StageRunning || !slices.Contains(it.Pools, pool) {
				continue
			}
			on := here
			for _, m := range machines {
				works := slices.ContainsFunc(m.Working, func(w fleet.Working) bool { return w.Work == ItemName(it) && w.Pool == pool })
				if at := slices.IndexFunc(others, func(o *slotGroup) bool { return o.machine == m.Name }); works && !m.Conducts && at >= 0 {
					on = others[at]
				}
			}
			on.items = append(on.items, it)
		}
		list = append(append(list, here), others...)
	}
	return list
}

// laneNames are the words of pools in the ids of lanes.
var laneNames = map[string]string{sched.PoolAgent: "agent", sched.PoolTest: "test"}

// lanes lists the slots, and what each does.
func (rd *Reader) lanes(s *snapshot, machines []fleet.Machine, records map[string][]run.CallRecord, free func(*slotGroup) *FreeSlot) (list []SlotLane, err error) {
	list = []SlotLane{}
	for _, st := range s.slotGroups(machines) {
		slices.SortStableFunc(st.items, func(a, b *lockkeeper.Item) int {
			return cmp.Or(a.DispatchedAt.Compare(b.DispatchedAt), cmp.Compare(a.Seq, b.Seq))
		})
		numbered := func(it *lockkeeper.Item) int {
			if st.pool == sched.PoolTest && st.machine == "" {
				return it.Slot
			}
			return 0
		}
		for n, i := range rd.laneOf.place(st.pool+" "+st.machine, st.limit, st.items, numbered) {
			lane := SlotLane{ID: fmt.Sprintf("%s-%d", laneNames[st.pool], n+1), Pool: st.pool, Machine: st.machine}
			if st.machine != "" {
				lane.ID = fmt.Sprintf("%s-%s-%d", laneNames[st.pool], st.machine, n+1)
			}
			if i < 0 {
				lane.Free = free(st)
			} else {
				work, unread := rd.laneWork(s, st.items[i], records)
				lane.Work, err = &work, errors.Join(err, unread)
			}
			if lane.Work != nil || lane.Free != nil {
				list = append(list, lane)
			}
		}
	}
	return list, err
}

// aside lists dispatched items without a slot, the oldest first.
func (rd *Reader) aside(s *snapshot, records map[string][]run.CallRecord) (list []LaneWork, err error) {
	list = []LaneWork{}
	for _, it := range s.active {
		if it.Stage == lockkeeper.StageRunning || run.FlowOf(it) != s.flow {
			continue
		}
		work, unread := rd.laneWork(s, it, records)
		list, err = append(list, work), errors.Join(err, unread)
	}
	slices.SortStableFunc(list, func(a, b LaneWork) int { return a.Since.Compare(b.Since) })
	return list, err
}

// laneWork describes a dispatched item.
func (rd *Reader) laneWork(s *snapshot, it *lockkeeper.Item, records map[string][]run.CallRecord) (w LaneWork, err error) {
	w = LaneWork{Item: it.ID, Name: ItemName(it), Phase: it.Phase, State: ItemState(it), Since: it.DispatchedAt}
	if _, waits := store.PoolOf(it, it.WaitsOn); waits {
		w.State = waitsForSlot
	}
	if of, ok := run.WorkOf(it); ok {
		w.Unit, w.Part = of.Unit, of.Part
	}
	for _, e := range records[it.ID] {
		if e.Call != nil {
			w.Calls, w.USD = w.Calls+1, rounded(w.USD+e.Call.USD, 1e6)
		}
		if e.Call == nil && it.Stage == lockkeeper.StageRunning && e.Began.After(w.Since) {
			w.Since = e.Began
		}
	}
	path, said, err := lastOutput(records[it.ID], it.ID)
	if err != nil || path == "" {
		return w, err
	}
	if w.Said = said; it.Stage == lockkeeper.StageRunning {
		w.Silent = s.At.Sub(said) >= rd.project.Config.Agent.StallAfter
	}
	w.Line, err = lastLine(path)
	return w, err
}

// recordsOf returns the records of calls and checks by item, each in the order in which they began.
func recordsOf(entries []run.CallRecord) map[string][]run.CallRecord {
	records := map[string][]run.CallRecord{}
	for _, e := range entries {
		records[e.Item] = append(records[e.Item], e)
	}
	return records
}

// How much of an output is searched for its last line, and how much of the line is shown.
const (
	lineRead  = 4 << 10
	lineShown = 240
)

var escapeCodes = regexp.MustCompile("\x1b\\[[0-9;?]*[ -/]*[@-~]")

// lastLine returns the last line of a file that is not empty, without colors.
func lastLine(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", ignoreMissing(err)
	}
	log, err := readLog(f, tailFrom, lineRead)
	if err != nil {
		return "", err
	}
	lines := bytes.Split(escapeCodes.ReplaceAll([]byte(log.Text), nil), []byte("\n"))
	for _, line := range slices.Backward(lines) {
		if at := bytes.LastIndexByte(bytes.TrimRight(line, "\r"), '\r'); at >= 0 {
			line = line[at+1:] // a progress bar
		}
		if text := strings.TrimSpace(string(line)); text != "" {
			return shortened(text), nil
		}
	}
	return "", nil
}

// shortened returns the beginning of a line.
func shortened(line string) string {
	if len(line) <= lineShown {
		return line
	}
	cut := lineShown
	for cut > 0 && !utf8.RuneStart(line[cut]) {
		cut--
	}
	return line[:cut] + "…"
}

// countWaits counts the queued items by what they wait for.
func countWaits(r store.Reader) (w QueueWaits, err error) {
	const page = 1_000
	for after, more := uint64(0), true; more; {
		some, err := r.Items(store.ItemQuery{After: after, Status: lockkeeper.ItemQueued, Limit: page})
		if err != nil {
			return w, err
		}
		for _, it := range some {
			after = it.Seq
			w.add(it)
		}
		more = len(some) == page
	}
	return w, nil
}

func (w *QueueWaits) add(it *lockkeeper.Item) {
	_, onPool := store.PoolOf(it, it.WaitsOn)
	kind, _, _ := strings.Cut(it.WaitsOn, ":")
	switch {
	case it.Stage == lockkeeper.StageReady && strings.TrimSpace(it.AvoidNode) == "", onPool:
		w.Slot++
	case it.Stage == lockkeeper.StageReady:
		w.Other++
	case kind == "item":
		w.After++
	default:
		w.Locks++
	}
}

// freeSlots returns a function that says why a slot of a group is free, or nil if no process
// conducts the run.
func (s *snapshot) freeSlots(waits QueueWaits, people int, pause FreeSlot) func(*slotGroup) *FreeSlot {
	return func(st *slotGroup) *FreeSlot {
		if s.conductor == nil {
			return nil
		}
		free := FreeSlot{Reason: FreeNothing, Text: "nothing is ready"}
		switch {
		case st.stops:
			free = FreeSlot{Reason: FreeStopping, Text: st.machine + " takes no further call"}
		case pause.Reason != "":
			free = pause
		case s.starting:
			free = FreeSlot{Reason: FreeStarting, Text: "the run is starting"}
		case st.pool == sched.PoolTest:
			free.Text = "no test is due"
		case waits.Slot > 0:
			free = FreeSlot{Reason: FreeStarting, Text: counted(waits.Slot, "item") + " ready to start"}
		case waits.Locks > 0:
			free = FreeSlot{Reason: FreeLocks, Text: counted(waits.Locks, "item") + " blocked by locks"}
		case waits.After > 0:
			free = FreeSlot{Reason: FreeAfter, Text: counted(waits.After, "item") + " waiting for other work"}
		case people > 0:
			free = FreeSlot{Reason: FreePeople, Text: counted(people, "decision") + " open"}
		}
		return &free
	}
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// waitsForSlot is the state of work that holds its locks and waits for a slot.
const waitsForSlot = "waiting for a slot"
