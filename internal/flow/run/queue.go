package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/documents"
	"lockkeeper/sched"
	"lockkeeper/store"
)

type workItem struct {
	Work
	phase      string // the first phase
	generation string // the digest of a batch's definition
	pools      []string
	targets    []string // files that the work writes
	reads      []string
	expected   time.Duration // how long the work runs
	behind     time.Duration // how long the work takes that waits for it
}

// key returns the key of work in the queue. The same work has the same key, so it is never queued
// twice. Names in a key contain no slashes (documents.KeyName).
func (p *Pipeline) key(d workItem) string {
	what := d.phase
	if d.Part != "" {
		what = d.Kind + "/" + documents.KeyName(d.Part)
	}
	if d.generation != "" {
		what += "@" + d.generation
	}
	return p.opt.Flow.Name + "/" + documents.KeyName(d.Unit) + "/" + what
}

func workOf(it *lockkeeper.Item) (d workItem, err error) {
	bad := func() (workItem, error) {
		return workItem{}, &lockkeeper.InputError{Field: "item", Value: it.Key, Reason: "not an item of a flow", Next: "lockkeeper job cancel " + it.ID}
	}
	parts := strings.Split(it.Key, "/")
	if len(parts) != 3 && len(parts) != 4 {
		return bad()
	}
	unit, ok := documents.ParseKeyName(parts[1])
	if !ok {
		return bad()
	}
	d = workItem{Work: Work{Unit: unit, Kind: it.Unit}, phase: it.Phase}
	if len(parts) == 4 {
		name, _, _ := strings.Cut(parts[3], "@")
		name, _, _ = strings.Cut(name, "#")
		if d.Part, ok = documents.ParseKeyName(name); !ok {
			return bad()
		}
	}
	return d, nil
}

// enqueue queues work that the run wants and that is not queued. Failed work stays failed
// until a person retries it.
func (p *Pipeline) enqueue(ctx context.Context, d workItem) error {
	if !p.wants(d.Work) {
		return nil
	}
	if p.opt.Locks == nil {
		return p.startUnqueued(ctx, d)
	}
	base := p.key(d)
	for n := 1; ; n++ {
		key := base
		if n > 1 {
			key = fmt.Sprintf("%s#%d", base, n)
		}
		it, err := p.itemWithKey(ctx, key)
		switch {
		case err != nil:
			return err
		case it != nil && it.Status == lockkeeper.ItemCompleted:
			continue // the work is due again: its document was removed or is not valid
		case it != nil:
			return nil
		}
		locks, err := p.locksOf(d)
		if err != nil {
			return err
		}
		p.estimate(&d)
		_, err = p.opt.Queue.Enqueue(ctx, sched.ItemSpec{Key: key, Workflow: d.Name(), Unit: d.Kind, Phase: d.phase, Project: moduleOf(d.Unit),
			Locks: locks, Pools: d.pools, Root: p.root(), By: p.opt.Actor, Estimate: d.expected, Behind: d.behind})
		return err
	}
}

// moduleOf returns the module of a unit. The scheduler alternates between modules.
func moduleOf(unit string) string {
	if dir := path.Dir(unit); dir != "." {
		return dir
	}
	return ""
}

func (p *Pipeline) itemWithKey(ctx context.Context, key string) (it *lockkeeper.Item, err error) {
	err = p.opt.Store.View(ctx, func(r store.Reader) (err error) {
		it, err = r.ItemWithKey(key)
		return err
	})
	return it, err
}

func (p *Pipeline) items(ctx context.Context) (list []*lockkeeper.Item, err error) {
	err = p.opt.Store.View(ctx, func(r store.Reader) (err error) {
		list, err = openItems(r, p.root())
		return err
	})
	return list, err
}

// locksOf returns the locks of a work item: its write targets, its folder of documents and, if
// reads are locked, its reads.
func (p *Pipeline) locksOf(d workItem) ([]lockkeeper.Lock, error) {
	folder := path.Join(p.opt.Folder, documents.UnitPath(d.Unit))
	var locks []lockkeeper.Lock
	add := func(at string, kind lockkeeper.Kind, mode lockkeeper.Mode) {
		locks = append(locks, lockkeeper.Lock{Target: lockkeeper.Target{Path: at, Kind: kind}, Mode: mode})
	}
	// The folder is locked as one file, because nothing else uses its files.
	own := func(at string) { add(at, lockkeeper.File, lockkeeper.Write) }
	switch d.Kind {
	case string(flow.BatchUnit):
		own(path.Join(folder, "batches", documents.FolderName(d.Part)))
		if p.opt.Flow.HasScreens() {
			for _, s := range p.groups[d.Unit].Screens {
				add(p.screenFolder(d.Unit, s.Name), lockkeeper.Dir, lockkeeper.Read)
			}
		} else {
			add(path.Join(folder, flow.AnalysisFile), lockkeeper.File, lockkeeper.Read)
			add(path.Join(folder, flow.BatchesFile), lockkeeper.File, lockkeeper.Read)
		}
	case string(flow.Screen):
		own(p.screenFolder(d.Unit, d.Part))
	case topicUnit:
		own(path.Join(folder, "research", documents.KeyName(d.Part)))
	default:
		for _, phase := range p.opt.Flow.Phases {
			if phase.Name == d.phase && phase.Output != "" {
				own(path.Join(folder, phase.Output))
			}
		}
	}
	resolve := func(paths []string, mode lockkeeper.Mode) error {
		for _, at := range paths {
			l, err := p.opt.Root.Resolve(p.opt.Root.Dir(), at, mode)
			if err != nil {
				return fmt.Errorf("resolve a %s target of %s: %w", mode, d.Name(), err)
			}
			locks = append(locks, l)
		}
		return nil
	}
	err := resolve(d.targets, lockkeeper.Write)
	if err != nil || !p.opt.LockReads {
		return locks, err
	}
	if len(d.reads) == 0 {
		d.reads = p.readsOf(d)
	}
	return locks, resolve(d.reads, lockkeeper.Read)
}

// readsOf lists the reads of work that declares none.
func (p *Pipeline) readsOf(d workItem) []string {
	if d.Kind == string(flow.Screen) {
		for _, s := range p.groups[d.Unit].Screens {
			if s.Name == d.Part {
				return p.opt.Layout.ReadsOf(s)
			}
		}
	}
	if d.Kind == string(flow.BatchUnit) {
		return nil
	}
	return p.filesOf(d.Unit)
}

func (p *Pipeline) retryFailed(ctx context.Context) error {
	if p.opt.Locks == nil {
		return nil
	}
	items, err := p.items(ctx)
	if err != nil {
		return err
	}
	for _, it := range items {
		d, err := workOf(it)
		if it.Status != lockkeeper.ItemError || err != nil || !p.wants(d.Work) {
			continue
		}
		u, err := p.opt.Progress.Unit(ctx, d.Unit)
		if err != nil {
			return err
		}
		if !isCurrent(u, it, d) {
			continue
		}
		if _, err := p.opt.Queue.Retry(ctx, it.ID, p.opt.Actor); err != nil && lockkeeper.CodeOf(err) != lockkeeper.CodeOverLock {
			return err
		}
	}
	return nil
}

// startUnqueued carries out work without locks and queue, in the legacy mode.
func (p *Pipeline) startUnqueued(ctx context.Context, d workItem) error {
	key := p.key(d)
	p.mu.Lock()
	_, failed := p.failed[key]
	_, running := p.going[key]
	if failed || running || p.budget != nil || !p.until.IsZero() || p.closing.Load() || p.halted.Load() || p.isAsking() {
		p.mu.Unlock()
		return nil
	}
	p.going[key] = true
	p.mu.Unlock()
	p.goroutines.Go(func() {
		t := p.newUnqueued(d.Name())
		defer t.freeSlots()
		err := t.dispatch(ctx, d.pools)
		if err == nil {
			err = p.do(ctx, t, d)
		}
		var paused *pausedError
		failed := err != nil && !errors.As(err, &paused) && ctx.Err() == nil
		p.mu.Lock()
		delete(p.going, key)
		if failed {
			p.failed[key] = err
		}
		p.mu.Unlock()
		if failed {
			p.tell(News{Kind: NewsFailed, Unit: d.Unit, Batch: d.Part, Phase: d.phase, Text: err.Error()})
		}
		p.mark(d.Unit)
	})
	return nil
}

// A queuedWork executes an item of the queue.
type queuedWork struct{ job *sched.Job }

func (j queuedWork) Phase(ctx context.Context, phase string, pools ...string) error {
	err := j.job.Phase(ctx, phase, pools...)
	if later, ok := errors.AsType[*sched.LaterError](err); ok {
		return &pausedError{later}
	}
	return err
}

func (j queuedWork) ReturnSlots(ctx context.Context) error { return j.job.ReturnSlots(ctx) }

func (j queuedWork) Note(ctx context.Context, text string) error { return j.job.Note(ctx, text) }
func (j queuedWork) ID() string                                  { return j.job.Item.ID }
func (j queuedWork) Mark() string                                { return j.job.Grant.ID }
func (j queuedWork) Grant() *lockkeeper.Grant                    { return &j.job.Grant.Grant }
func (j queuedWork) Slot() int                                   { return j.job.Item.Slot }
func (j queuedWork) Started(ctx context.Context, group lockkeeper.Process) error {
	return j.job.Grant.SetProcess(ctx, group)
}

// An unqueuedWork executes work in the legacy mode. It holds slots but no grant.
type unqueuedWork struct {
	id    string
	pools map[string]chan int // free slots, by pool
	held  map[string]int      // the held slot, by pool

	number int // the number of the test slot of a trial, among all processes; 0: that of the pool
}

func (p *Pipeline) newUnqueued(name string) *unqueuedWork {
	return &unqueuedWork{id: fmt.Sprintf("%s.%d", name, p.unqueuedIDs.Add(1)), pools: p.slots, held: map[string]int{}}
}

// dispatch waits for the slots of the first phase or, if it needs that of an agent, for one to prepare
// the work.
func (l *unqueuedWork) dispatch(ctx context.Context, pools []string) error {
	if slices.Contains(pools, sched.PoolAgent) {
		return l.acquire(ctx, sched.PoolPrepare)
	}
	return l.acquire(ctx, pools...)
}

func (l *unqueuedWork) Phase(ctx context.Context, _ string, pools ...string) error {
	l.free(func(pool string) bool { return pool != sched.PoolPrepare })
	err := l.acquire(ctx, pools...)
	l.free(func(pool string) bool { return pool == sched.PoolPrepare })
	return err
}

func (l *unqueuedWork) acquire(ctx context.Context, pools ...string) error {
	for _, pool := range pools {
		select {
		case l.held[pool] = <-l.pools[pool]:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (l *unqueuedWork) free(which func(pool string) bool) {
	for pool, slot := range l.held {
		if which(pool) {
			l.pools[pool] <- slot
			delete(l.held, pool)
		}
	}
}

func (l *unqueuedWork) freeSlots() { l.free(func(string) bool { return true }) }

func (l *unqueuedWork) ReturnSlots(context.Context) error {
	l.freeSlots()
	return nil
}

func (l *unqueuedWork) Note(context.Context, string) error                { return nil }
func (l *unqueuedWork) ID() string                                        { return l.id }
func (l *unqueuedWork) Mark() string                                      { return "loose-" + l.id }
func (l *unqueuedWork) Grant() *lockkeeper.Grant                          { return nil }
func (l *unqueuedWork) Slot() int                                         { return cmp.Or(l.number, l.held[sched.PoolTest]) }
func (l *unqueuedWork) Started(context.Context, lockkeeper.Process) error { return nil }

// slotsOf returns the slot pools of the legacy mode.
func slotsOf(l Limits) map[string]chan int {
	pools := map[string]chan int{}
	for pool, n := range map[string]int{sched.PoolAgent: l.Agents, sched.PoolAPI: l.API, sched.PoolTest: l.Tests, sched.PoolPrepare: l.prepared()} {
		pools[pool] = make(chan int, n)
		for slot := range n {
			pools[pool] <- slot + 1
		}
	}
	return pools
}
