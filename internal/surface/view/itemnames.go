package view

import (
	"context"
	"sync"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/run"
	"lockkeeper/store"
)

// itemNames knows the items of each name and of each unit. The name of an item never changes, so a
// read continues after the last item that an earlier one saw.
type itemNames struct {
	mu     sync.Mutex
	last   uint64                 // sequence number of the last item that was read
	names  map[string]string      // names by id
	newest map[string]string      // id of the newest item, by name
	units  map[[2]string][]string // ids of the items by flow and unit, the oldest first
}

// itemNamesPage is how many items one query reads.
const itemNamesPage = 1_000

// read adds the items since the last read.
func (n *itemNames) read(r store.Reader) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.newest == nil {
		n.names, n.newest, n.units = map[string]string{}, map[string]string{}, map[[2]string][]string{}
	}
	for {
		list, err := r.Items(store.ItemQuery{After: n.last, Limit: itemNamesPage})
		if err != nil {
			return err
		}
		for _, it := range list {
			n.add(it)
		}
		if len(list) < itemNamesPage {
			return nil
		}
	}
}

func (n *itemNames) add(it *lockkeeper.Item) {
	n.last = it.Seq
	name := ItemName(it)
	n.names[it.ID], n.newest[name] = name, it.ID
	if w, ok := run.WorkOf(it); ok {
		of := [2]string{run.FlowOf(it), w.Unit}
		n.units[of] = append(n.units[of], it.ID)
	}
}

// of returns the ids of the items of a unit, the oldest first.
func (n *itemNames) of(flowName, unit string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.units[[2]string{flowName, unit}]...)
}

// ReadItemNames reads the names of new items, for NewestItem.
func (rd *Reader) ReadItemNames(ctx context.Context) error {
	return rd.project.Store.View(ctx, rd.items.read)
}

// NewestItem returns the id of the newest item with a name, as of the last call of ReadItemNames, or ""
// if there is none.
func (rd *Reader) NewestItem(name string) string {
	rd.items.mu.Lock()
	defer rd.items.mu.Unlock()
	return rd.items.newest[name]
}

// NameOfItem returns the name of an item, as of the last call of ReadItemNames, or "" if it is unknown.
func (rd *Reader) NameOfItem(id string) string {
	rd.items.mu.Lock()
	defer rd.items.mu.Unlock()
	return rd.items.names[id]
}

// currentFlowFor is how long a Reader keeps the name of the current flow.
const currentFlowFor = time.Second

// CurrentFlow returns the flow that answers are about if the caller names none: the one that runs or ran
// last. It returns "" if that is unknown.
func (rd *Reader) CurrentFlow() string {
	return rd.flow.get(currentFlowFor, func() string {
		name, err := conduct.LastFlow(rd.project, "")
		if err != nil {
			return ""
		}
		return name
	})
}
