package lockkeeper

import (
	"cmp"
	"slices"
	"time"
)

// An Item is one piece of queued work, which runs under one grant. The fields before
// Phase are what was asked for and do not change. The others are its progress.
type Item struct {
	ID       string   `json:"id"`
	Seq      uint64   `json:"seq"`           // number of the event that queued it: its place among equals
	Key      string   `json:"key,omitempty"` // its submitter's own name for it; no two items share one
	Workflow string   `json:"workflow"`      // what it is called: a controller, a screen, a batch
	Unit     string   `json:"unit,omitempty"`
	Project  string   `json:"project,omitempty"`
	Class    string   `json:"class,omitempty"` // cpu or io
	Locks    []Lock   `json:"locks,omitempty"`
	Policy   string   `json:"policy"`
	Caps     []string `json:"caps,omitempty"`  // pools it takes a slot of for as long as it runs
	After    []string `json:"after,omitempty"` // ids of items that have to be completed first
	Root     string   `json:"root,omitempty"`  // only nodes that reach it may run it; empty: every node
	Command  []string `json:"command,omitempty"`
	Dir      string   `json:"dir,omitempty"` // where the command runs, below the root
	By       Actor    `json:"by"`

	Phase        string        `json:"phase"`
	Rank         int           `json:"rank"`            // of the phase; the lowest comes first
	Pools        []string      `json:"pools,omitempty"` // pools it takes a slot of in this phase
	Status       ItemStatus    `json:"status"`
	Stage        ItemStage     `json:"-"`
	Escalated    bool          `json:"escalated,omitempty"`
	Turn         uint64        `json:"-"`                   // its turn among the projects of its rank
	WaitsOn      string        `json:"parked_on,omitempty"` // the key it waits on (package store)
	WokenBy      string        `json:"-"`                   // the key it waited on before it was made ready
	Since        Instant       `json:"-"`                   // when it began to wait on a lock, or last counted a retry; 0: it does not wait
	FirstSince   Instant       `json:"-"`                   // since when it is the first to wait for a lock, or the first of its rank to wait for a slot; 0: it is not
	Blocked      time.Duration `json:"blocked,omitempty"`   // how long it has been first, before FirstSince
	CheckAt      Instant       `json:"-"`                   // when a tick has to look at it; 0: never
	Blockers     uint64        `json:"-"`                   // digest of what it was last found blocked by
	Retries      int           `json:"retries"`             // lock waits over the limit, one after the other
	Attempts     int           `json:"attempts"`            // how often it was dispatched
	GrantID      string        `json:"grant_id,omitempty"`  // what it runs under, or has reserved
	Worker       string        `json:"worker,omitempty"`
	Slot         int           `json:"slot,omitempty"` // of the pool of test runs: no other running item has it; 0: none
	AvoidNode    string        `json:"-"`              // a node whose copy is behind: the item is not sent there
	QueuedAt     time.Time     `json:"queued_at"`
	DispatchedAt time.Time     `json:"dispatched_at,omitzero"`
	CompletedAt  time.Time     `json:"completed_at,omitzero"` // or failed
	Note         string        `json:"note,omitempty"`        // what it says of its progress
	Failure      *Failure      `json:"failure,omitempty"`     // of a running one: that it was cancelled
}

// ItemStatus is the status of an item as the documents name it.
type ItemStatus string

// The statuses, and no others.
const (
	ItemQueued     ItemStatus = "queued"
	ItemDispatched ItemStatus = "dispatched"
	ItemCompleted  ItemStatus = "completed"
	ItemError      ItemStatus = "error"
)

// ItemStage says what an item waits for.
type ItemStage uint8

// The stages. A queued item is ready or waiting. So is a dispatched item that waits for
// the slots of its next phase.
const (
	StageReady   ItemStage = iota + 1 // a worker with a free slot looks at the first of these
	StageWaiting                      // something that it needs is taken
	StageRunning
	StageEnded
)

// Failure is why an item is in the error state.
type Failure struct {
	Phase     string         `json:"phase"`
	Reason    string         `json:"reason"`
	Conflicts []ConflictInfo `json:"conflicts,omitempty"`
	Waited    time.Duration  `json:"waited,omitempty"`
	Attempts  int            `json:"attempts,omitempty"`
}

// IsHolding reports whether an item was dispatched and holds its grant.
func (it *Item) IsHolding() bool { return it.Status == ItemDispatched }

// StatusSince is when an item came into its status.
func (it *Item) StatusSince() time.Time {
	switch it.Status {
	case ItemDispatched:
		return it.DispatchedAt
	case ItemCompleted, ItemError:
		return it.CompletedAt
	}
	return it.QueuedAt
}

// HasReserved reports whether a queued item has reserved its locks in the engine's wait
// list.
func (it *Item) HasReserved() bool { return it.Status == ItemQueued && it.GrantID != "" }

// Precedence orders items before their rank counts: dispatched items come first, and
// escalated ones before others. The smallest comes first.
func (it *Item) Precedence() int {
	precedence := 3
	if it.IsHolding() {
		precedence -= 2
	}
	if it.Escalated {
		precedence--
	}
	return precedence
}

// CompareItems is the order of the queue: precedence, rank, the turns of the projects,
// and which item was queued first. Stores that keep an index repeat it: sqlstore as
// queueOrder, memstore as position. The conformance suite holds them against it.
func CompareItems(a, b *Item) int {
	return cmp.Or(cmp.Compare(a.Precedence(), b.Precedence()), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Turn, b.Turn), cmp.Compare(a.Seq, b.Seq))
}

// Clone copies an item; what stays the same is shared.
func (it *Item) Clone() *Item {
	c := *it
	return &c
}

// Enter puts an item into a stage. It stops waiting for what it waited for.
func (it *Item) Enter(stage ItemStage) {
	it.Stage, it.WaitsOn, it.WokenBy, it.Since, it.FirstSince, it.CheckAt, it.Slot = stage, "", "", 0, 0, 0, 0
}

// FirstFor returns how long an item has been the first to wait, up to now.
func (it *Item) FirstFor(now Instant) time.Duration {
	if it.FirstSince == 0 {
		return it.Blocked
	}
	return it.Blocked + now.Until(it.FirstSince)
}

// StopFirst adds the time for which an item was the first to wait to Blocked.
func (it *Item) StopFirst(now Instant) {
	it.Blocked, it.FirstSince = it.FirstFor(now), 0
}

// Worker is a process that runs items.
type Worker struct {
	ID      string    `json:"id"`
	Node    string    `json:"node"`
	Process *Process  `json:"process,omitempty"`
	Roots   []string  `json:"roots"` // what it can reach
	Only    bool      `json:"-"`     // it takes nothing else; known to itself alone
	Slots   int       `json:"slots"`
	Began   time.Time `json:"began"`
	Expires Instant   `json:"-"` // it is taken for gone after that
}

// Ways lists the roots whose items a worker takes; "" is those that need none.
func (w *Worker) TakesRoots() []string {
	if w.Only {
		return w.Roots
	}
	return append([]string{""}, w.Roots...)
}

// Reaches reports whether a worker can run items of a root.
func (w *Worker) Reaches(root string) bool { return root == "" || slices.Contains(w.Roots, root) }
