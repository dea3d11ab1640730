package simulate

import (
	"context"
	"time"

	"lockkeeper"
	"lockkeeper/store"
	"lockkeeper/store/memstore"
)

// A watch is the store of a simulation. It measures how long items wait for files.
type watch struct {
	*memstore.Store
	keys    map[string]string                   // paths by key
	waiting map[string]wait                     // items that wait for a file now
	blocked map[string]map[string]time.Duration // the time that items waited, by path and item
}

// A wait is the time since which an item waits for a path.
type wait struct {
	path  string
	since time.Time
}

func newWatch(p *Plan, now func() store.Moment) *watch {
	w := &watch{Store: memstore.New("simulation", memstore.Options{Now: now}), keys: map[string]string{},
		waiting: map[string]wait{}, blocked: map[string]map[string]time.Duration{}}
	for i := range p.Items {
		for _, l := range p.Items[i].locks() {
			for asked := lockkeeper.Read; asked <= lockkeeper.Write; asked++ {
				w.keys[store.OnLock(asked, l.Target)] = l.Path
			}
		}
	}
	return w
}

// Update implements store.Store. A simulation never rolls back, because an error ends it.
func (w *watch) Update(ctx context.Context, fn func(store.Tx) error) error {
	return w.Store.Update(ctx, func(tx store.Tx) error { return fn(watched{tx, w}) })
}

// A watched is a transaction of a watch.
type watched struct {
	store.Tx
	watch *watch
}

func (t watched) SaveItem(it *lockkeeper.Item) error {
	t.watch.saw(it, t.Now().Wall)
	return t.Tx.SaveItem(it)
}

// saw adds the time that an item waited until now. An item that has reserved its locks still
// waits for the file that it waited for before.
func (w *watch) saw(it *lockkeeper.Item, now time.Time) {
	last, was := w.waiting[it.Workflow]
	if spent := now.Sub(last.since); was && spent > 0 {
		if w.blocked[last.path] == nil {
			w.blocked[last.path] = map[string]time.Duration{}
		}
		w.blocked[last.path][it.Workflow] += spent
	}
	if it.Stage != lockkeeper.StageWaiting || !store.IsOnLock(it.WaitsOn) {
		delete(w.waiting, it.Workflow)
		return
	}
	path, ok := w.keys[it.WaitsOn]
	if !ok {
		path = last.path
	}
	w.waiting[it.Workflow] = wait{path, now}
}
