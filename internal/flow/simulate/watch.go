package simulate

import (
	"context"
	"time"

	"lockkeeper"
	"lockkeeper/store"
	"lockkeeper/store/memstore"
)

// watch is the store of a simulation. It sees when an item is parked on a file and when
// it is not any more.
type watch struct {
	*memstore.Store
	keys    map[string]string                   // which path a key is about
	parked  map[string]stay                     // by item, those who are parked on a file now
	blocked map[string]map[string]time.Duration // by path and item, how long they were
}

// stay is one time of being parked.
type stay struct {
	path  string
	since time.Time
}

func newWatch(p *Plan, now func() store.Moment) *watch {
	w := &watch{Store: memstore.New("simulation", memstore.Options{Now: now}), keys: map[string]string{},
		parked: map[string]stay{}, blocked: map[string]map[string]time.Duration{}}
	for i := range p.Items {
		for _, l := range p.Items[i].locks() {
			for asked := lockkeeper.Read; asked <= lockkeeper.Write; asked++ {
				w.keys[store.OnLock(asked, l.Target)] = l.Path
			}
		}
	}
	return w
}

// Update implements store.Store. Nothing that a simulation does is rolled back: an
// error ends it.
func (w *watch) Update(ctx context.Context, fn func(store.Tx) error) error {
	return w.Store.Update(ctx, func(tx store.Tx) error { return fn(watched{tx, w}) })
}

// watched is a transaction of a watch.
type watched struct {
	store.Tx
	watch *watch
}

func (t watched) SaveItem(it *lockkeeper.Item) error {
	t.watch.saw(it, t.Now().Wall)
	return t.Tx.SaveItem(it)
}

// saw counts the time that an item was parked until now. One that has reserved its
// place in the line waits for the file on which it was parked before.
func (w *watch) saw(it *lockkeeper.Item, now time.Time) {
	last, was := w.parked[it.Workflow]
	if spent := now.Sub(last.since); was && spent > 0 {
		if w.blocked[last.path] == nil {
			w.blocked[last.path] = map[string]time.Duration{}
		}
		w.blocked[last.path][it.Workflow] += spent
	}
	if it.Stage != lockkeeper.StageWaiting || !store.IsOnLock(it.WaitsOn) {
		delete(w.parked, it.Workflow)
		return
	}
	path, ok := w.keys[it.WaitsOn]
	if !ok {
		path = last.path
	}
	w.parked[it.Workflow] = stay{path, now}
}
