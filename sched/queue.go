package sched

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// A Queue is the queued work of one space.
type Queue struct {
	store store.Store
	locks *lock.Manager
	opt   Options
	extra atomic.Pointer[map[string]int] // the slots of other machines, by pool; nil: none
}

// New returns the queue in a store. locks manages the locks of the same store. The caller
// closes both.
func New(st store.Store, locks *lock.Manager, opt Options) (*Queue, error) {
	opt = opt.withDefaults()
	return &Queue{store: st, locks: locks, opt: opt}, errors.Join(opt.Phases.check(), opt.Limits.check())
}

// An ItemSpec describes an item to enqueue.
type ItemSpec struct {
	Key      string // unique among all items; empty: none
	Workflow string
	Unit     string
	Phase    string // default: DefaultPhase
	Project  string
	Class    string // cpu, io or empty
	Map      bool   // the item counts against the cap on map jobs of its project
	Job      bool   // the item counts against the caps on submitted jobs
	Locks    []lockkeeper.Lock
	Policy   string   // default: lockkeeper.DefaultPolicy
	Pools    []string // pools whose slots the first phase needs
	After    []string // ids or keys of items that must be completed first, also of the same call
	Root     string
	Command  []string
	Dir      string
	By       lockkeeper.Actor
	Estimate time.Duration // how long the item is expected to run; default: DefaultEstimate
	Behind   time.Duration // how long the work takes that waits for the item and is not queued yet
	Person   string        // why a person must start the item, by retrying it; empty: no person needed
}

// Enqueue adds items to the queue, all of them or none, and returns them in the same order.
// An item whose locks are wider than its policy allows is added in the error state, so that
// a person sees it.
func (q *Queue) Enqueue(ctx context.Context, orders ...ItemSpec) ([]*lockkeeper.Item, error) {
	items := make([]*lockkeeper.Item, len(orders))
	for i, o := range orders {
		var err error
		if items[i], err = q.item(o); err != nil {
			return nil, err
		}
	}
	if err := checkKeys(items); err != nil {
		return nil, err
	}
	err := q.locks.Update(ctx, func(tx *lock.Tx) error {
		last, err := lastNumber(tx)
		if err != nil {
			return err
		}
		for i, it := range items { // the ids are set first, because items may name each other
			if err := q.number(tx, it, last+uint64(i)+1); err != nil {
				return err
			}
		}
		for i, it := range items {
			after, err := resolve(tx, orders[i].After, items)
			if err != nil {
				return err
			}
			it.After = after
		}
		if cycle := findCycle(items); cycle != nil {
			return &lockkeeper.InputError{Field: "after", Value: strings.Join(cycle, " → "), Reason: "they wait for each other forever", Next: "remove one of the dependencies"}
		}
		setChains(items, orders)
		for _, it := range items {
			if err := errors.Join(q.insert(tx, it), lengthen(tx, it)); err != nil {
				return err
			}
		}
		tx.Wake(store.QueueWakeID)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return items, nil
}

func (q *Queue) item(o ItemSpec) (*lockkeeper.Item, error) {
	bad := func(field, value, reason, next string) error {
		return &lockkeeper.InputError{Field: field, Value: value, Reason: reason, Next: next}
	}
	it := &lockkeeper.Item{
		Key: o.Key, Workflow: o.Workflow, Unit: o.Unit, Project: o.Project, Class: o.Class, Policy: cmp.Or(o.Policy, lockkeeper.DefaultPolicy), Root: o.Root,
		Command: o.Command, Dir: o.Dir, By: o.By, Estimate: cmp.Or(max(o.Estimate, 0), DefaultEstimate), Phase: cmp.Or(o.Phase, DefaultPhase),
		Locks: lockkeeper.Normalize(slices.Clone(o.Locks)), Status: lockkeeper.ItemQueued,
	}
	for _, name := range []struct{ field, value string }{{"name", o.Workflow}, {"key", o.Key}, {"unit", o.Unit}, {"project", o.Project}, {"root", o.Root}} {
		if len(name.value) > 200 || !utf8.ValidString(name.value) || strings.ContainsFunc(name.value, isControl) {
			return nil, bad(name.field, name.value, "over 200 bytes, or with characters that cannot be printed", "use up to 200 bytes of plain text")
		}
	}
	for _, word := range append([]string{o.Dir}, o.Command...) { // the store might change an invalid text, and another command would run
		if !isText(word) {
			return nil, bad("command", word, "not UTF-8, or with a NUL byte", "put it into a script, and queue that")
		}
	}
	rank, known := q.opt.Phases.Rank(it.Phase)
	switch {
	case it.Workflow == "":
		return nil, bad("name", "", "empty", "give the work a name")
	case IsItemID(o.Key):
		return nil, bad("key", o.Key, "it looks like the id of an item", "use another key")
	case !known:
		return nil, bad("phase", it.Phase, "unknown phase", "use one of "+q.opt.Phases.String())
	case o.Class != "" && o.Class != "cpu" && o.Class != "io":
		return nil, bad("class", o.Class, "unknown class", "use cpu or io")
	case o.Project == everyProject:
		return nil, bad("project", o.Project, "reserved", "name the project")
	case o.Map && o.Project == "":
		return nil, bad("project", "", "empty, and map jobs are counted by project", "name the project")
	}
	it.Rank = rank
	if o.Job {
		it.Caps = append(it.Caps, PoolJobs)
		if o.Project != "" {
			it.Caps = append(it.Caps, jobsOf+o.Project)
		}
	}
	if o.Map {
		it.Caps = append(it.Caps, mapsOf+o.Project)
	}
	if o.Class == "cpu" {
		it.Caps = append(it.Caps, PoolCPU)
	}
	var err error
	if it.Pools, err = poolsOf(o.Pools); err != nil {
		return nil, err
	}
	if o.Person != "" {
		it.Failure = &lockkeeper.Failure{Phase: it.Phase, Reason: "it waits for a person: " + o.Person}
	}
	return it, q.checkLocks(it)
}

// poolsOf checks the pools of a phase and removes duplicates: a phase needs one slot of each.
func poolsOf(names []string) ([]string, error) {
	for _, pool := range names {
		if pool != PoolAgent && pool != PoolAPI && pool != PoolTest {
			return nil, &lockkeeper.InputError{Field: "pool", Value: pool, Reason: "unknown pool", Next: fmt.Sprintf("use %s, %s or %s", PoolAgent, PoolAPI, PoolTest)}
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(names))), nil
}

// checkLocks refuses locks that can never be granted. An item whose locks are too wide for
// its policy is kept in the error state, because it shows a fault in the plan.
func (q *Queue) checkLocks(it *lockkeeper.Item) error {
	err := q.locks.Check(lockkeeper.Request{Holder: it.Workflow, Locks: it.Locks, Policy: it.Policy, Kept: true})
	if lockkeeper.CodeOf(err) == lockkeeper.CodeOverLock {
		it.Failure = &lockkeeper.Failure{Phase: it.Phase, Reason: err.Error()}
		return nil
	}
	return err
}

// isText reports whether every store can store a string unchanged.
func isText(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// checkKeys refuses two items of one call with the same key.
func checkKeys(items []*lockkeeper.Item) error {
	seen := map[string]bool{}
	for _, it := range items {
		if it.Key != "" && seen[it.Key] {
			return &lockkeeper.InputError{Field: "key", Value: it.Key, Reason: "used twice", Next: "give each item its own key"}
		}
		seen[it.Key] = true
	}
	return nil
}

// number sets the number and the id of an item.
func (q *Queue) number(tx *lock.Tx, it *lockkeeper.Item, n uint64) error {
	if it.Key != "" {
		old, err := tx.ItemWithKey(it.Key)
		if err != nil {
			return err
		}
		if old != nil {
			return &lockkeeper.InputError{Field: "key", Value: it.Key, Reason: fmt.Sprintf("%s (%s since %s) has this key", old.ID, word(old.Status), old.StatusSince().UTC().Format("2006-01-02 15:04:05Z")),
				Next: "lockkeeper why " + old.ID}
		}
	}
	it.ID = itemID(n)
	seq, err := tx.Append(lockkeeper.Event{Kind: lockkeeper.EventQueued, Actor: it.By, Holder: it.Workflow, Locks: it.Locks,
		Data: map[string]string{"phase": it.Phase, lock.ItemKey: it.ID}})
	it.Seq, it.QueuedAt = seq, tx.Now().Wall.UTC()
	return err
}

// findCycle returns the names of items of one call that wait for each other; nil: none.
// Items of earlier calls cannot wait for these.
func findCycle(items []*lockkeeper.Item) []string {
	byID := map[string]*lockkeeper.Item{}
	for _, it := range items {
		byID[it.ID] = it
	}
	done := map[string]bool{}
	var path []string
	var visit func(it *lockkeeper.Item) []string
	visit = func(it *lockkeeper.Item) []string {
		if i := slices.Index(path, it.ID); i >= 0 {
			var names []string
			for _, id := range append(path[i:], it.ID) {
				names = append(names, byID[id].Workflow)
			}
			return names
		}
		if done[it.ID] {
			return nil
		}
		path = append(path, it.ID)
		for _, id := range it.After {
			if next := byID[id]; next != nil {
				if cycle := visit(next); cycle != nil {
					return cycle
				}
			}
		}
		path = path[:len(path)-1]
		done[it.ID] = true
		return nil
	}
	for _, it := range items {
		if cycle := visit(it); cycle != nil {
			return cycle
		}
	}
	return nil
}

// insert stores a new item, ready or waiting.
func (q *Queue) insert(tx *lock.Tx, it *lockkeeper.Item) error {
	if it.Failure != nil {
		it.Status, it.Stage, it.CompletedAt = lockkeeper.ItemError, lockkeeper.StageEnded, tx.Now().Wall
		if err := tx.InsertItem(it); err != nil {
			return err
		}
		return q.noteFailure(tx, it)
	}
	if err := q.checkRoot(tx, it); err != nil {
		return err
	}
	it.Stage = lockkeeper.StageReady
	open, err := unfinished(tx, it)
	if err != nil {
		return err
	}
	if open != "" {
		it.Stage, it.WaitsOn = lockkeeper.StageWaiting, store.OnItem(open)
	}
	if err := q.giveTurn(tx, it); err != nil {
		return err
	}
	return tx.InsertItem(it)
}

// unfinished returns the first item that an item must wait for; empty: none. An item that is
// not stored any more was completed, because only completed items are pruned.
func unfinished(r store.Reader, it *lockkeeper.Item) (string, error) {
	for _, id := range it.After {
		first, err := r.Item(id)
		if err != nil {
			return "", err
		}
		if first != nil && first.Status != lockkeeper.ItemCompleted {
			return id, nil
		}
	}
	return "", nil
}

// checkRoot refuses an item that no live worker can run.
func (q *Queue) checkRoot(r store.Reader, it *lockkeeper.Item) error {
	if it.Root == "" {
		return nil
	}
	workers, err := r.Workers()
	if err != nil {
		return err
	}
	var known []string
	for _, w := range workers {
		if w.Expires <= r.Now().Lease {
			continue
		}
		if w.Reaches(it.Root) {
			return nil
		}
		known = append(known, fmt.Sprintf("%s reaches %s", w.Node, strings.Join(w.Roots, ", ")))
	}
	if known == nil {
		known = []string{"no worker has reported which roots it reaches"}
	}
	return &lockkeeper.InputError{Field: "root", Value: it.Root, Reason: "no node is known to reach it: " + strings.Join(known, "; "),
		Next: "start `lockkeeper job work` where that root is, or name another root"}
}

// everyProject stands for all projects of a rank. Its turn is that of the item that was dispatched
// last.
const everyProject = "*"

// giveTurn puts an item behind the earlier items of its project and rank. Projects alternate,
// so a project with many items does not delay another one that comes later.
func (q *Queue) giveTurn(tx store.Tx, it *lockkeeper.Item) error {
	own, err := tx.Turn(it.Project, it.Rank)
	if err != nil {
		return err
	}
	all, err := tx.Turn(everyProject, it.Rank)
	if err != nil {
		return err
	}
	it.Turn = max(own, all) + 1
	return tx.SetTurn(it.Project, it.Rank, it.Turn)
}
