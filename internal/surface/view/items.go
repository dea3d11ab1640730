package view

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/job"
	"lockkeeper/store"
)

// Items is a page of the queue.
type Items struct {
	Moment
	Items []ListedItem `json:"items"`          // the newest first
	Next  uint64       `json:"next,omitempty"` // After of the next page; 0: this page is the last
	Queue QueueCount   `json:"queue"`
}

type QueueCount struct {
	Ready     int `json:"ready"`
	Blocked   int `json:"blocked"`
	Running   int `json:"running"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
	Canceled  int `json:"canceled"`
}

// ListedItem is an item with its state and name, and what it waits for.
type ListedItem struct {
	*lockkeeper.Item
	State  string // ready, blocked, escalated, running, preparing, collecting, between phases, completed, failed or canceled
	Name   string
	Unit   string  // the unit of a flow's item
	Waits  []Wait  // what the item waits for, the most important first; empty: it does not wait
	Waited Seconds // from the queue to its last start, or until now
	Worked Seconds // from its last start to its end, or until now; 0: it has not started
}

// ShownListedItem is the JSON of a listed item.
type ShownListedItem struct {
	lockkeeper.ShownItem
	State  string  `json:"state"`
	Name   string  `json:"name"`
	OfUnit string  `json:"of_unit,omitempty"`
	Waits  []Wait  `json:"waits"`
	Waited Seconds `json:"waited_seconds"`
	Worked Seconds `json:"worked_seconds"`
}

// Shown returns what JSON shows of the item.
func (it ListedItem) Shown() ShownListedItem {
	return ShownListedItem{it.Item.Shown(), it.State, it.Name, it.Unit, it.Waits, it.Waited, it.Worked}
}

// MarshalJSON implements json.Marshaler.
func (it ListedItem) MarshalJSON() ([]byte, error) { return json.Marshal(it.Shown()) }

// listed returns an item with its durations, as of a time.
func listed(it *lockkeeper.Item, now time.Time) ListedItem {
	l := ListedItem{Item: it, State: ItemState(it), Name: ItemName(it), Waits: []Wait{}}
	if w, ok := run.WorkOf(it); ok {
		l.Unit = w.Unit
	}
	started, ended := it.DispatchedAt, it.CompletedAt
	if ended.IsZero() {
		ended = now
	}
	if it.Status == lockkeeper.ItemQueued || started.IsZero() {
		started = ended // an earlier start does not count
	}
	l.Waited, l.Worked = seconds(max(0, started.Sub(it.QueuedAt))), seconds(max(0, ended.Sub(started)))
	return l
}

// waits reports whether an item waits for something.
func waits(it *lockkeeper.Item) bool {
	return it.Stage == lockkeeper.StageReady || it.Stage == lockkeeper.StageWaiting
}

// ItemsQuery selects a page of items. An empty field matches every item.
type ItemsQuery struct {
	Status lockkeeper.ItemStatus
	Unit   string // the unit of a flow
	Phase  string
	Text   string // text to find in the name, the id, the note or the reason of a failure, ignoring case
	After  uint64 // Next of the previous page
	Limit  int    // default 100
}

// matches reports whether an item matches q in all but its status.
func (q ItemsQuery) matches(it *lockkeeper.Item) bool {
	if q.Phase != "" && it.Phase != q.Phase {
		return false
	}
	if w, ok := run.WorkOf(it); q.Unit != "" && (!ok || w.Unit != q.Unit) {
		return false
	}
	if q.Text == "" {
		return true
	}
	texts := []string{ItemName(it), it.ID, it.Note}
	if it.Failure != nil {
		texts = append(texts, it.Failure.Reason)
	}
	return strings.Contains(strings.ToLower(strings.Join(texts, "\n")), strings.ToLower(q.Text))
}

// pageOf is the default number of entries of a page.
const pageOf = 100

const pageMost = 1_000

// itemsRead limits the items that one page reads. A search for rare items continues with the next
// page.
const itemsRead = 5_000

func pageLimit(asked int) int {
	if asked <= 0 {
		return pageOf
	}
	return min(asked, pageMost)
}

// Items lists the items of the queue, the newest first.
func (rd *Reader) Items(ctx context.Context, q ItemsQuery) (v *Items, err error) {
	v = &Items{Items: []ListedItem{}}
	queue, err := job.Open(rd.project)
	if err != nil {
		return nil, err
	}
	v.Moment, err = rd.at(ctx, func(r store.Reader) error {
		census, err := r.Census()
		if err != nil {
			return err
		}
		v.Queue = QueueCount{Ready: census.Ready, Blocked: census.Waiting, Running: census.Running, Completed: census.Completed}
		if v.Queue.Failed, v.Queue.Canceled, err = failedItems(r, census); err != nil {
			return err
		}
		var found []*lockkeeper.Item
		if found, v.Next, err = q.search(r); err != nil {
			return err
		}
		v.Items, err = explained(r, queue, found)
		return err
	})
	return v, err
}

// search reads the items of a page, the newest first, and returns where the next page starts.
func (q ItemsQuery) search(r store.Reader) (found []*lockkeeper.Item, next uint64, err error) {
	limit, after := pageLimit(q.Limit), q.After
	for read := 0; read < itemsRead; {
		page, err := r.Items(store.ItemQuery{After: after, Status: q.Status, Limit: eventPage, Latest: true})
		if err != nil {
			return nil, 0, err
		}
		for _, it := range page {
			if q.matches(it) {
				if len(found) == limit {
					return found, after, nil
				}
				found = append(found, it)
			}
			after = it.Seq
		}
		if len(page) < eventPage {
			return found, 0, nil
		}
		read += len(page)
	}
	return found, after, nil
}

// explained returns items with what they wait for.
func explained(r store.Reader, queue *job.Queue, items []*lockkeeper.Item) ([]ListedItem, error) {
	why, err := queue.ExplainIn(r, slices.DeleteFunc(slices.Clone(items), func(it *lockkeeper.Item) bool { return !waits(it) }))
	if err != nil {
		return nil, err
	}
	list := []ListedItem{}
	for _, it := range items {
		l := listed(it, r.Now().Wall)
		if len(why) > 0 && why[0].Item.ID == it.ID {
			l.Waits, why = waitsOf(why[0]), why[1:]
		}
		list = append(list, l)
	}
	return list, nil
}

// failedItems counts the items that failed, and those that were canceled.
func failedItems(r store.Reader, census store.Census) (failed, canceled int, err error) {
	if census.Failed == 0 {
		return 0, 0, nil
	}
	err = job.EachItem(r, lockkeeper.ItemError, func(it *lockkeeper.Item) bool {
		if it.IsCanceled() {
			canceled++
		}
		return true
	})
	return census.Failed - canceled, canceled, err
}

// FirstItem is an item with its state in a few words.
type FirstItem struct {
	*lockkeeper.Item
	State string // as of ItemSituation, but error for a failed item
}

// MarshalJSON implements json.Marshaler.
func (it FirstItem) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		lockkeeper.ShownItem
		State string `json:"state"`
	}{it.Shown(), it.State})
}

// firstRead is how many items of a status FirstItems considers at least.
const firstRead = 1_000

// FirstItems lists up to limit items of each status, in the order of the statuses, and reports
// whether there are more. Queued items are in the order of their starts, ended ones are sorted
// latest first. Limit 0 lists all. If there are very many items, it considers only the oldest
// queued and the newest ended ones.
func (rd *Reader) FirstItems(ctx context.Context, limit int, statuses ...lockkeeper.ItemStatus) (list []FirstItem, more bool, err error) {
	_, err = rd.at(ctx, func(r store.Reader) error {
		list, more = []FirstItem{}, false
		for _, status := range statuses {
			some, err := firstItems(r, status, limit)
			if err != nil {
				return err
			}
			if limit > 0 && len(some) > limit {
				some, more = some[:limit], true
			}
			for _, it := range some {
				state := ItemSituation(it)
				if it.Status == lockkeeper.ItemError {
					state = string(it.Status)
				}
				list = append(list, FirstItem{it, state})
			}
		}
		return nil
	})
	return list, more, err
}

func firstItems(r store.Reader, status lockkeeper.ItemStatus, limit int) (list []*lockkeeper.Item, err error) {
	considered := max(limit+1, firstRead)
	if status == lockkeeper.ItemQueued && limit > 0 {
		list, err = r.Items(store.ItemQuery{Status: status, Limit: considered})
		list = slices.Clone(list)
	} else {
		err = job.EachItem(r, status, func(it *lockkeeper.Item) bool {
			list = append(list, it)
			return limit == 0 || len(list) != considered
		})
	}
	slices.SortStableFunc(list, func(a, b *lockkeeper.Item) int {
		if status == lockkeeper.ItemQueued || status == lockkeeper.ItemDispatched {
			return cmp.Or(cmp.Compare(a.Stage, b.Stage), lockkeeper.CompareItems(a, b))
		}
		return b.CompletedAt.Compare(a.CompletedAt)
	})
	return list, err
}
