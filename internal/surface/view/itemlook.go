package view

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/job"
	"lockkeeper/sched"
	"lockkeeper/store"
)

// itemEvents is how many of the latest events about an item are shown, and among how many
// they are looked for.
const (
	itemEvents = 30
	itemLook   = 5_000
)

// Item explains a piece of work, which is named by its id or its key, or by what it is
// called where that is clear.
func (l *Look) Item(ctx context.Context, name string) (*Item, error) {
	q, err := job.Open(l.app)
	if err != nil {
		return nil, err
	}
	found, err := l.find(ctx, q, name)
	if err != nil {
		return nil, err
	}
	why, err := q.Why(ctx, found.ID)
	if err != nil {
		return nil, err
	}
	it := &why.Item
	v := &Item{Why: *why, Waits: waitsOf(why), State: stateOf(it), Since: it.StatusSince(), Flow: run.FlowOf(it), Acts: itemActs(it), Calls: []run.PastCall{}, Landings: []Landing{}, Problems: []string{}}
	if w, ok := run.WorkOf(it); ok {
		v.Unit, v.Kind, v.Part = w.Unit, w.Kind, w.Part
	}
	if err := l.itemInStore(ctx, v, q); err != nil {
		return nil, err
	}
	if err := l.itemInQueue(ctx, v, q); err != nil {
		return nil, err
	}
	if v.Log, err = l.log(it, tailFrom); err != nil {
		v.Problems = append(v.Problems, "what it said: "+err.Error())
	}
	if v.Flow == "" {
		return v, nil
	}
	return v, l.itemInFlow(ctx, v)
}

// find finds an item by its name.
func (l *Look) find(ctx context.Context, q *job.Queue, name string) (*lockkeeper.Item, error) {
	it, err := q.Find(ctx, name)
	if err == nil && it == nil {
		err = &lockkeeper.InputError{Field: "item", Value: name, Reason: "there is none of that name", Next: "lockkeeper job list"}
	}
	return it, err
}

// waitsOf is what an item waits for, what is to be said first first.
func waitsOf(e *sched.Explanation) []Wait {
	list := []Wait{}
	it := &e.Item
	if it.Status != lockkeeper.ItemQueued && (it.Status != lockkeeper.ItemDispatched || it.Stage == lockkeeper.StageRunning) {
		return list
	}
	for i := range e.After {
		list = append(list, Wait{Kind: WaitAfter, Text: waitsFor(&sched.Explanation{After: e.After[i : i+1]}), Item: e.After[i].ID})
	}
	for i, w := range e.Locks {
		b := blockerOf(w)
		list = append(list, Wait{Kind: WaitLock, Text: waitsFor(&sched.Explanation{Locks: e.Locks[i : i+1]}), Blocker: &b, Since: w.AcquiredAt, Left: seconds(w.Left), Overdue: w.Overdue})
	}
	for i, s := range e.Slots {
		list = append(list, Wait{Kind: WaitSlot, Text: waitsFor(&sched.Explanation{Slots: e.Slots[i : i+1]}), Slots: &Slots{Pool: s.Pool, Taken: s.Taken, Limit: s.Limit}})
	}
	if e.Behind != "" {
		list = append(list, Wait{Kind: WaitCopy, Text: waitsFor(&sched.Explanation{Behind: e.Behind})})
	}
	if len(list) == 0 {
		list = append(list, Wait{Kind: WaitTurn, Text: waitsFor(e)})
	}
	return list
}

// itemInStore adds what the store knows of an item besides the queue.
func (l *Look) itemInStore(ctx context.Context, v *Item, q *job.Queue) (err error) {
	it := &v.Why.Item
	v.Moment, err = l.at(ctx, func(r store.Reader) error {
		var events []lockkeeper.Event
		for before, read := uint64(0), 0; read < itemLook && len(events) < itemEvents; {
			page, err := r.Events(store.EventQuery{Before: before, After: it.Seq - 1, Limit: eventPage, Latest: true})
			if err != nil {
				return err
			}
			for _, ev := range page {
				before = ev.Seq
				if (ItemOf(ev) == it.ID || ev.Holder == it.ID) && len(events) < itemEvents {
					events = append(events, ev)
				}
			}
			if read += len(page); len(page) < eventPage {
				break
			}
		}
		if v.Events, err = linesOf(r, events); err != nil {
			return err
		}
		workers, err := q.WorkersIn(r)
		for _, w := range workers {
			if w.ID == it.Worker && it.Status == lockkeeper.ItemDispatched {
				v.Worker = &Worker{Worker: w, Life: l.life(w.Process), Items: []string{it.ID}}
			}
		}
		v.Lost = it.Status == lockkeeper.ItemDispatched && it.Worker != "" && v.Worker == nil
		return err
	})
	return err
}

// itemInQueue adds what else of the queue and the locks concerns an item.
func (l *Look) itemInQueue(ctx context.Context, v *Item, q *job.Queue) error {
	it := &v.Why.Item
	if it.Status == lockkeeper.ItemQueued {
		first, err := q.FailedBefore(ctx, it)
		if err != nil {
			return err
		}
		if first != nil {
			v.Failed = &FailedFirst{Item: first.ID, Name: itemName(first), Reason: first.Failure.Reason}
		}
	}
	if it.GrantID == "" || it.Status == lockkeeper.ItemCompleted {
		return nil
	}
	e, err := l.app.Locks.Request(ctx, it.GrantID)
	if err != nil || e == nil {
		return err
	}
	known := names{}
	known.add(it)
	s := l.standing(*e, known)
	v.Grant = &s
	return nil
}

// itemInFlow adds what a flow knows of an item: its batch, what agents did for it, and
// what of it landed.
func (l *Look) itemInFlow(ctx context.Context, v *Item) error {
	entries, err := l.journal.All(v.Flow)
	if err != nil {
		v.Problems = append(v.Problems, "what agents did: "+err.Error())
	}
	for _, e := range entries {
		if e.Call != nil && (e.Item == v.Why.Item.ID || e.Item == "" && e.Work == v.Why.Item.Workflow) {
			v.Calls = append(v.Calls, *e.Call)
			v.Cost.add(e.Call.Call)
		}
	}
	v.Cost.TotalUSD = v.Cost.USD
	if v.Kind != string(flow.BatchUnit) {
		return nil
	}
	p, err := l.papers(ctx, v.Flow)
	if err != nil {
		return err
	}
	u, known := p.find(v.Unit)
	if !known || u.Unit == nil {
		return nil
	}
	b, known := u.Batch(v.Part)
	if !known {
		return nil
	}
	if v.Batch, err = l.batchDetail(p, u.Unit, b, true); err != nil {
		return err
	}
	if b.Landed == nil {
		return nil
	}
	v.Landings, err = l.landingsOf(ctx, b.Landed.Landings)
	if slices.ContainsFunc(v.Landings, func(ln Landing) bool { return ln.Undo.Refused == "" }) {
		name := v.Unit + "/" + v.Part
		v.Acts = append(v.Acts, Act{Name: "undo", Target: name, Command: "lockkeeper undo " + name})
	}
	return err
}

// tailFrom asks for the end of a log.
const tailFrom = -1

// logTail is how much of a log is shown at once.
const logTail = 64 << 10

// ItemLog reads what the agent or command of an item says, from a place on, for whoever
// follows it; a negative place: its end.
func (l *Look) ItemLog(ctx context.Context, name string, from int64) (*Log, error) {
	q, err := job.Open(l.app)
	if err != nil {
		return nil, err
	}
	it, err := l.find(ctx, q, name)
	if err != nil {
		return nil, err
	}
	log, err := l.log(it, from)
	if err == nil && log == nil {
		err = &lockkeeper.InputError{Field: "item", Value: name, Reason: "nothing is known of what it said", Next: "lockkeeper why " + it.ID}
	}
	return log, err
}

// log reads what was said for an item; nil: nothing is known of it.
func (l *Look) log(it *lockkeeper.Item, from int64) (*Log, error) {
	path := ""
	if name := run.FlowOf(it); name != "" {
		entries, wrong := l.journal.All(name)
		at, _, err := lastSaid(entries, it.ID)
		if at == "" {
			return nil, errors.Join(wrong, err)
		}
		path = at
	} else if it.Attempts == 0 {
		return nil, nil
	}
	var f *os.File
	var err error
	if path != "" {
		f, err = os.Open(path)
	} else {
		f, err = job.Output(l.app, it, it.Attempts)
	}
	if err != nil {
		return nil, ignoreMissing(err)
	}
	log, err := readLog(f, from)
	if err != nil {
		return nil, err
	}
	log.Silent = it.Status == lockkeeper.ItemDispatched && it.Stage == lockkeeper.StageRunning && time.Since(log.Said) >= l.app.Config.Agent.StallAfter
	return log, nil
}

// lastSaid finds where an item's agent, or check, last said something, and when.
func lastSaid(entries []run.CallRecord, item string) (path string, at time.Time, err error) {
	for _, e := range slices.Backward(entries) {
		if e.Item != item {
			continue
		}
		if path, at, err = e.Said(); err != nil || path != "" {
			return path, at, err
		}
	}
	return "", time.Time{}, nil
}

// readLog reads a part of a log that may grow, whole characters alone, and closes it.
func readLog(f *os.File, from int64) (_ *Log, err error) {
	defer f.Close() // only read from
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	log := &Log{Size: info.Size(), Said: info.ModTime(), Path: f.Name()}
	if from < 0 {
		from = max(0, log.Size-logTail)
	}
	log.From = min(from, log.Size) // it was cut since
	text, err := io.ReadAll(io.LimitReader(io.NewSectionReader(f, log.From, log.Size-log.From), logTail))
	if err != nil {
		return nil, err
	}
	log.From, log.Text = wholeText(log.From, text)
	log.Next = log.From + int64(len(log.Text))
	return log, nil
}
