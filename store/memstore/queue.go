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
)

// queue is the queue of a space.
type queue struct {
	byID    map[string]*seat
	byKey   map[string]*seat
	bySeq   index
	status  index // by status and number
	ready   index // by root
	parked  index // by what they are parked on
	due     index
	onLocks int // how many are parked on locks

	slots   map[string]int
	turns   map[turn]uint64
	workers map[string]lockkeeper.Worker
}

type turn struct {
	project string
	rank    int
}

func newQueue() queue {
	all := func(*lockkeeper.Item) bool { return true }
	bySeq := func(a, b *lockkeeper.Item) int { return cmp.Compare(a.Seq, b.Seq) }
	return queue{
		byID: map[string]*seat{}, byKey: map[string]*seat{},
		slots: map[string]int{}, turns: map[turn]uint64{}, workers: map[string]lockkeeper.Worker{},
		bySeq: index{has: all, compare: bySeq},
		status: index{has: all, compare: func(a, b *lockkeeper.Item) int {
			if a.Status != b.Status {
				return cmp.Compare(a.Status, b.Status)
			}
			return bySeq(a, b)
		}},
		ready: index{
			has: func(it *lockkeeper.Item) bool { return it.Stage == lockkeeper.StageReady },
			compare: func(a, b *lockkeeper.Item) int {
				if a.Root != b.Root {
					return cmp.Compare(a.Root, b.Root)
				}
				return lockkeeper.CompareItems(a, b)
			},
		},
		parked: index{
			has: func(it *lockkeeper.Item) bool { return it.Stage == lockkeeper.StageParked },
			compare: func(a, b *lockkeeper.Item) int {
				if a.ParkedOn != b.ParkedOn {
					return cmp.Compare(a.ParkedOn, b.ParkedOn)
				}
				return lockkeeper.CompareItems(a, b)
			},
		},
		due: index{
			has:     func(it *lockkeeper.Item) bool { return it.Due > 0 },
			compare: func(a, b *lockkeeper.Item) int { return cmp.Or(cmp.Compare(a.Due, b.Due), bySeq(a, b)) },
		},
	}
}

func (q *queue) indexes() [5]*index {
	return [...]*index{&q.bySeq, &q.status, &q.ready, &q.parked, &q.due}
}

func (q *queue) add(s *seat) {
	for _, x := range q.indexes() {
		x.add(s)
	}
	q.byID[s.ID] = s
	if s.Key != "" {
		q.byKey[s.Key] = s
	}
	q.count(s.Item, 1)
}

func (q *queue) remove(s *seat) {
	for _, x := range q.indexes() {
		x.remove(s)
	}
	delete(q.byID, s.ID)
	delete(q.byKey, s.Key)
	q.count(s.Item, -1)
}

// replace changes what is in a seat. Wherever that moves it, it leaves its place
// as the old item before it takes another.
func (q *queue) replace(s *seat, next *lockkeeper.Item) {
	indexes := q.indexes()
	for i, x := range indexes {
		if x.moves(s.Item, next) {
			x.remove(s)
		} else {
			indexes[i] = nil
		}
	}
	q.count(s.Item, -1)
	s.Item = next
	q.count(s.Item, 1)
	for _, x := range indexes {
		if x != nil {
			x.add(s)
		}
	}
}

func (q *queue) count(it *lockkeeper.Item, n int) {
	if lockkeeper.IsOnLock(it.ParkedOn) {
		q.onLocks += n
	}
}

// item is what is in a seat; nil stands for none.
func (s *seat) item() *lockkeeper.Item {
	if s == nil {
		return nil
	}
	return s.Item
}

// numbered finds an item by its number.
func (q *queue) numbered(seq uint64) *lockkeeper.Item {
	it := q.bySeq.first(func(it *lockkeeper.Item) bool { return it.Seq < seq })
	if it == nil || it.Seq != seq {
		return nil
	}
	return it
}

// pruneAtOnce bounds what is looked at when items are forgotten.
const pruneAtOnce = 2_000

func (q *queue) prune(before time.Time) {
	var gone []*lockkeeper.Item
	looked := 0
	for it := range q.ofStatus(lockkeeper.ItemQuery{Status: lockkeeper.ItemCompleted}) {
		if looked++; looked > pruneAtOnce || it.Status != lockkeeper.ItemCompleted {
			break
		}
		if it.CompletedAt.Before(before) {
			gone = append(gone, it)
		}
	}
	for _, it := range gone {
		q.remove(q.byID[it.ID])
	}
}

// ofStatus lists what a query for a status can mean, and then others.
func (q *queue) ofStatus(ask lockkeeper.ItemQuery) iter.Seq[*lockkeeper.Item] {
	if ask.Latest {
		return q.status.downFrom(func(it *lockkeeper.Item) bool {
			return it.Status < ask.Status || it.Status == ask.Status && (ask.After == 0 || it.Seq < ask.After)
		})
	}
	return q.status.from(func(it *lockkeeper.Item) bool {
		return it.Status < ask.Status || it.Status == ask.Status && it.Seq <= ask.After
	})
}

func (q *queue) ofAny(ask lockkeeper.ItemQuery) iter.Seq[*lockkeeper.Item] {
	if ask.Latest {
		return q.bySeq.downFrom(func(it *lockkeeper.Item) bool { return ask.After == 0 || it.Seq < ask.After })
	}
	return q.bySeq.from(func(it *lockkeeper.Item) bool { return it.Seq <= ask.After })
}

func (t *tx) Item(id string) (*lockkeeper.Item, error) { return t.queue.byID[id].item(), nil }

func (t *tx) ItemWithKey(key string) (*lockkeeper.Item, error) { return t.queue.byKey[key].item(), nil }

func (t *tx) Items(q lockkeeper.ItemQuery) (out []*lockkeeper.Item, err error) {
	some := t.queue.ofAny(q)
	if q.Status != "" {
		some = t.queue.ofStatus(q)
	}
	for it := range some {
		if len(out) >= q.Limit || q.Status != "" && it.Status != q.Status {
			break
		}
		out = append(out, it)
	}
	return out, nil
}

func (t *tx) FirstReady(root string) (*lockkeeper.Item, error) {
	it := t.queue.ready.first(func(it *lockkeeper.Item) bool { return it.Root < root })
	if it == nil || it.Root != root {
		return nil, nil
	}
	return it, nil
}

func (t *tx) FirstParked(key string) (*lockkeeper.Item, error) {
	it := t.queue.parked.first(func(it *lockkeeper.Item) bool { return it.ParkedOn < key })
	if it == nil || it.ParkedOn != key {
		return nil, nil
	}
	return it, nil
}

func (t *tx) ParkedKeys(prefix string) (keys []string, err error) {
	it := t.queue.parked.first(func(it *lockkeeper.Item) bool { return it.ParkedOn < prefix })
	for it != nil && strings.HasPrefix(it.ParkedOn, prefix) {
		last := it.ParkedOn
		keys = append(keys, last)
		it = t.queue.parked.first(func(it *lockkeeper.Item) bool { return it.ParkedOn <= last })
	}
	return keys, nil
}

func (t *tx) NextDue() (lockkeeper.Instant, error) {
	it := t.queue.due.first(func(*lockkeeper.Item) bool { return false })
	if it == nil {
		return 0, nil
	}
	return it.Due, nil
}

func (t *tx) DueItems(now lockkeeper.Instant, limit int) (out []*lockkeeper.Item, err error) {
	for it := range t.queue.due.from(func(*lockkeeper.Item) bool { return false }) {
		if it.Due > now || len(out) >= limit {
			break
		}
		out = append(out, it)
	}
	return out, nil
}

func (t *tx) Census() (c lockkeeper.Census, err error) {
	for _, it := range t.queue.byID {
		switch {
		case it.Stage == lockkeeper.StageReady:
			c.Ready++
		case it.Stage == lockkeeper.StageParked:
			c.Parked++
		case it.Stage == lockkeeper.StageRunning:
			c.Running++
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
	if q.byID[it.ID] != nil || q.numbered(it.Seq) != nil || it.Key != "" && q.byKey[it.Key] != nil {
		return fmt.Errorf("item %s with number %d and key %q is not new", it.ID, it.Seq, it.Key)
	}
	s := &seat{it.Clone()}
	q.add(s)
	t.undo = append(t.undo, undo{kind: undoOther, other: func() { q.remove(s) }})
	return nil
}

func (t *tx) SaveItem(it *lockkeeper.Item) error {
	q := &t.queue
	s := q.byID[it.ID]
	if s == nil {
		return fmt.Errorf("item %s is not stored", it.ID)
	}
	old, next := s.Item, it.Clone()
	next.Seq, next.Key, next.Workflow, next.Unit, next.Project, next.Class = old.Seq, old.Key, old.Workflow, old.Unit, old.Project, old.Class
	next.Locks, next.Policy, next.Caps, next.After, next.Root = old.Locks, old.Policy, old.Caps, old.After, old.Root
	next.Command, next.Dir, next.By, next.QueuedAt = old.Command, old.Dir, old.By, old.QueuedAt
	q.replace(s, next)
	t.undo = append(t.undo, undo{kind: undoOther, other: func() { q.replace(s, old) }})
	return nil
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

func (t *tx) HasParked() bool { return t.queue.onLocks > 0 }
