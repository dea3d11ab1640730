package memstore

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

type queue struct {
	byID    map[string]*itemCell
	byKey   map[string]*itemCell
	bySeq   index
	status  index // items by status and number
	ready   index // by root
	waiting index // items by the key that they wait on
	checks  index
	onLocks int // how many items wait on locks

	slots   map[string]int
	turns   map[turn]uint64
	workers map[string]lockkeeper.Worker
}

type turn struct {
	project string
	rank    int
}

func newQueue() queue {
	return queue{
		byID: map[string]*itemCell{}, byKey: map[string]*itemCell{},
		slots: map[string]int{}, turns: map[turn]uint64{}, workers: map[string]lockkeeper.Worker{},
		bySeq: index{position: func(it *lockkeeper.Item) (position, bool) {
			return bySeqIn("", it), true
		}},
		status: index{position: func(it *lockkeeper.Item) (position, bool) {
			return bySeqIn(string(it.Status), it), true
		}},
		ready: index{position: func(it *lockkeeper.Item) (position, bool) {
			return inQueue(it.Root, it), it.Stage == lockkeeper.StageReady
		}},
		waiting: index{position: func(it *lockkeeper.Item) (position, bool) {
			return inQueue(it.WaitsOn, it), it.Stage == lockkeeper.StageWaiting
		}},
		checks: index{position: func(it *lockkeeper.Item) (position, bool) {
			return position{"", lockkeeper.QueueKey{Rank: int(it.CheckAt), Seq: it.Seq}}, it.CheckAt > 0
		}},
	}
}

func inQueue(list string, it *lockkeeper.Item) position { return position{list, it.QueueKey()} }

func bySeqIn(list string, it *lockkeeper.Item) position {
	return position{list, lockkeeper.QueueKey{Seq: it.Seq}}
}

// replace changes the item in a cell; nil: none.
func (q *queue) replace(s *itemCell, next *lockkeeper.Item) {
	old := s.Item
	for _, x := range []*index{&q.bySeq, &q.status, &q.ready, &q.waiting, &q.checks} {
		x.move(s, old, next)
	}
	if old != nil {
		q.count(old, -1)
	}
	s.Item = next
	if next != nil {
		q.count(next, 1)
	}
	switch {
	case old == nil:
		q.byID[next.ID] = s
		if next.Key != "" {
			q.byKey[next.Key] = s
		}
	case next == nil:
		delete(q.byID, old.ID)
		delete(q.byKey, old.Key)
	}
}

func (q *queue) count(it *lockkeeper.Item, n int) {
	if store.IsOnLock(it.WaitsOn) {
		q.onLocks += n
	}
}

// item returns the item in a cell; nil: none.
func (s *itemCell) item() *lockkeeper.Item {
	if s == nil {
		return nil
	}
	return s.Item
}

func (q *queue) bySeqNumber(seq uint64) *lockkeeper.Item {
	it := q.bySeq.first(func(p *position) bool { return p.Seq < seq })
	if it == nil || it.Seq != seq {
		return nil
	}
	return it
}

// pruneAtOnce bounds how many items prune examines.
const pruneAtOnce = 2_000

func (q *queue) prune(before time.Time) {
	var gone []*lockkeeper.Item
	var newest *lockkeeper.Item
	for newest = range q.bySeq.downFrom(func(*position) bool { return true }) {
		break
	}
	looked := 0
	for it := range q.ofStatus(store.ItemQuery{Status: lockkeeper.ItemCompleted}) {
		if looked++; looked > pruneAtOnce || it.Status != lockkeeper.ItemCompleted {
			break
		}
		if it.CompletedAt.Before(before) {
			gone = append(gone, it)
		}
	}
	for _, it := range gone {
		if it != newest {
			q.replace(q.byID[it.ID], nil)
		}
	}
}

// ofStatus returns the items that a query for a status can select, followed by others.
func (q *queue) ofStatus(ask store.ItemQuery) iter.Seq[*lockkeeper.Item] {
	line := string(ask.Status)
	if ask.Latest {
		return q.status.downFrom(func(p *position) bool {
			return p.list < line || p.list == line && (ask.After == 0 || p.Seq < ask.After)
		})
	}
	return q.status.from(func(p *position) bool { return p.list < line || p.list == line && p.Seq <= ask.After })
}

func (q *queue) ofAny(ask store.ItemQuery) iter.Seq[*lockkeeper.Item] {
	if ask.Latest {
		return q.bySeq.downFrom(func(p *position) bool { return ask.After == 0 || p.Seq < ask.After })
	}
	return q.bySeq.from(func(p *position) bool { return p.Seq <= ask.After })
}

func (t *tx) Item(id string) (*lockkeeper.Item, error) { return t.queue.byID[id].item(), nil }

func (t *tx) ItemWithKey(key string) (*lockkeeper.Item, error) { return t.queue.byKey[key].item(), nil }

func (t *tx) Items(q store.ItemQuery) (out []*lockkeeper.Item, err error) {
	some := t.queue.ofAny(q)
	if q.Status != "" {
		some = t.queue.ofStatus(q)
	}
	for it := range some {
		if len(out) >= store.Page(q.Limit) || q.Status != "" && it.Status != q.Status {
			break
		}
		out = append(out, it)
	}
	return out, nil
}

func (t *tx) FirstReady(root string) (*lockkeeper.Item, error) {
	return t.queue.ready.firstIn(root), nil
}

func (t *tx) FirstWaiting(key string) (*lockkeeper.Item, error) {
	return t.queue.waiting.firstIn(key), nil
}

func (t *tx) SlotLeaders() ([]*lockkeeper.Item, error) {
	return append(t.queue.ready.leaders(""), t.queue.waiting.leaders(store.OnPool(""))...), nil
}

func (t *tx) WaitKeys(prefix string) (keys []string, err error) {
	it := t.queue.waiting.first(func(p *position) bool { return p.list < prefix })
	for it != nil && strings.HasPrefix(it.WaitsOn, prefix) {
		last := it.WaitsOn
		keys = append(keys, last)
		it = t.queue.waiting.first(func(p *position) bool { return p.list <= last })
	}
	return keys, nil
}

func (t *tx) NextCheck() (lockkeeper.Instant, error) {
	it := t.queue.checks.first(func(*position) bool { return false })
	if it == nil {
		return 0, nil
	}
	return it.CheckAt, nil
}

func (t *tx) ItemsToCheck(now lockkeeper.Instant, limit int) (out []*lockkeeper.Item, err error) {
	for it := range t.queue.checks.from(func(*position) bool { return false }) {
		if it.CheckAt > now || len(out) >= limit {
			break
		}
		out = append(out, it)
	}
	return out, nil
}

func (t *tx) Census() (c store.Census, err error) {
	for _, it := range t.queue.byID {
		switch {
		case it.Status == lockkeeper.ItemDispatched:
			c.Running++
		case it.Stage == lockkeeper.StageReady:
			c.Ready++
		case it.Stage == lockkeeper.StageWaiting:
			c.Waiting++
		case it.Status == lockkeeper.ItemCompleted:
			c.Completed++
		case it.Status == lockkeeper.ItemError:
			c.Failed++
		}
	}
	return c, nil
}

func (t *tx) SlotsTaken(pool string) (int, error) { return t.queue.slots[pool], nil }

func (t *tx) Turn(project string, rank int) (uint64, error) {
	return t.queue.turns[turn{project, rank}], nil
}

func (t *tx) Workers() ([]lockkeeper.Worker, error) {
	byID := func(a, b lockkeeper.Worker) int { return cmp.Compare(a.ID, b.ID) }
	return slices.SortedFunc(maps.Values(t.queue.workers), byID), nil
}

func (t *tx) InsertItem(it *lockkeeper.Item) error {
	q := &t.queue
	if q.byID[it.ID] != nil || q.bySeqNumber(it.Seq) != nil || it.Key != "" && q.byKey[it.Key] != nil {
		return fmt.Errorf("item %s with number %d and key %q is not new", it.ID, it.Seq, it.Key)
	}
	t.replaceItem(&itemCell{}, it.Clone())
	return nil
}

func (t *tx) SaveItem(it *lockkeeper.Item) error {
	s := t.queue.byID[it.ID]
	if s == nil {
		return fmt.Errorf("item %s is not stored", it.ID)
	}
	old, next := s.Item, it.Clone()
	next.Seq, next.Key, next.Workflow, next.Unit, next.Project, next.Class = old.Seq, old.Key, old.Workflow, old.Unit, old.Project, old.Class
	next.Locks, next.Policy, next.Caps, next.After, next.Root = old.Locks, old.Policy, old.Caps, old.After, old.Root
	next.Command, next.Dir, next.By, next.Estimate, next.QueuedAt = old.Command, old.Dir, old.By, old.Estimate, old.QueuedAt
	t.replaceItem(s, next)
	return nil
}

func (t *tx) replaceItem(s *itemCell, next *lockkeeper.Item) {
	old := s.Item
	t.queue.replace(s, next)
	t.undo = append(t.undo, undo{kind: undoOther, other: func() { t.queue.replace(s, old) }})
}

func (t *tx) TakeSlots(pool string, n int) error {
	remember(t, t.queue.slots, pool)
	t.queue.slots[pool] += n
	return nil
}

func (t *tx) SetTurn(project string, rank int, last uint64) error {
	key := turn{project, rank}
	remember(t, t.queue.turns, key)
	t.queue.turns[key] = last
	return nil
}

func (t *tx) PutWorker(w lockkeeper.Worker) error {
	remember(t, t.queue.workers, w.ID)
	t.queue.workers[w.ID] = w
	return nil
}

func (t *tx) DeleteWorker(id string) error {
	remember(t, t.queue.workers, id)
	delete(t.queue.workers, id)
	return nil
}

func (t *tx) AnyWaitsOnLock() bool { return t.queue.onLocks > 0 }
