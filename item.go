package lockkeeper

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// An Item is one piece of queued work, which runs under one grant. The fields before Phase are
// the submitted specification and do not change. The others are its progress.
type Item struct {
	ID       string   `json:"id"`
	Seq      uint64   `json:"seq"`           // number of the event that queued the item
	Key      string   `json:"key,omitempty"` // the submitter's name for the item; unique
	Workflow string   `json:"workflow"`      // name of the item, such as that of a controller, a screen or a batch
	Unit     string   `json:"unit,omitempty"`
	Project  string   `json:"project,omitempty"`
	Class    string   `json:"class,omitempty"` // cpu or io
	Locks    []Lock   `json:"locks,omitempty"`
	Policy   string   `json:"policy"`
	Caps     []string `json:"caps,omitempty"`  // pools whose slots the item takes while it runs
	After    []string `json:"after,omitempty"` // ids of items that must be completed first
	Root     string   `json:"root,omitempty"`  // only nodes that have this root may run it; empty: every node
	Command  []string `json:"command,omitempty"`
	Dir      string   `json:"dir,omitempty"` // where the command runs, below the root
	// Estimate is how long the item is expected to run.
	Estimate time.Duration `json:"-"`
	By       Actor         `json:"by"`

	Phase        string        `json:"phase"`
	Rank         int           `json:"rank"`            // rank of the phase; see QueueKey
	Pools        []string      `json:"pools,omitempty"` // pools whose slots the item takes in this phase
	Status       ItemStatus    `json:"status"`
	Stage        ItemStage     `json:"-"`
	Escalated    bool          `json:"escalated,omitempty"`
	Turn         uint64        `json:"-"`                   // see QueueKey
	Chain        time.Duration `json:"-"`                   // estimated time from the start of the item to the end of all work that waits for it
	WaitsOn      string        `json:"parked_on,omitempty"` // the key that the item waits on (package store)
	WokenBy      string        `json:"-"`                   // the key that the item waited on before it was made ready
	Since        Instant       `json:"-"`                   // when the item began to wait on a lock, or last counted a retry; 0: it does not wait
	FirstSince   Instant       `json:"-"`                   // when the item became the first to wait for its lock, or the first of its rank to wait for a slot; 0: it is not first
	Blocked      time.Duration `json:"blocked,omitempty"`   // total time of the item's earlier periods as the first, before FirstSince
	CheckAt      Instant       `json:"-"`                   // when a tick must check the item; 0: never
	Blockers     uint64        `json:"-"`                   // digest of the blockers that were last found
	Retries      int           `json:"retries"`             // consecutive lock waits that were over the limit
	Attempts     int           `json:"attempts"`            // how often the item was dispatched
	GrantID      string        `json:"grant_id,omitempty"`  // the grant that the item runs under, or has reserved
	Worker       string        `json:"worker,omitempty"`
	Slot         int           `json:"slot,omitempty"` // number of the item's slot in the pool of test runs, unique among running items; 0: none
	AvoidNode    string        `json:"-"`              // nodes, separated by spaces, that do not run the item because their copy is behind
	QueuedAt     time.Time     `json:"queued_at"`
	DispatchedAt time.Time     `json:"dispatched_at,omitzero"`
	CompletedAt  time.Time     `json:"completed_at,omitzero"` // when the item completed or failed
	Note         string        `json:"note,omitempty"`        // progress of the item, for people
	Failure      *Failure      `json:"failure,omitempty"`     // set on a running item if it was canceled
}

// A LockRequest has the paths of an item or a request by mode, as the source documents name them.
type LockRequest struct {
	ReadPaths  []string `json:"read_paths"`
	WritePaths []string `json:"write_paths"`
}

// itemFields has the fields of an Item without its methods.
type itemFields Item

// A ShownItem is the JSON of an item.
type ShownItem struct {
	itemFields
	LockRequest LockRequest `json:"lock_request"` // the paths of Locks
}

// Shown returns what JSON shows of an item.
func (it Item) Shown() ShownItem {
	return ShownItem{itemFields(it), LockRequest{ReadPaths: append(pathsIn(it.Locks, Read), pathsIn(it.Locks, Upgradeable)...), WritePaths: pathsIn(it.Locks, Write)}}
}

// MarshalJSON implements json.Marshaler.
func (it Item) MarshalJSON() ([]byte, error) { return json.Marshal(it.Shown()) }

// DefaultWait is how long a request for locks waits that names no time.
const DefaultWait = 300 * time.Second

// ItemStatus is the status of an item.
type ItemStatus string

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
	StageReady      ItemStage = iota + 1 // a worker with a free slot examines the first of these
	StageWaiting                         // something that the item needs is not free
	StageRunning                         // the item holds the slots of its phase
	StageEnded                           // the item completed or failed
	StagePreparing                       // a dispatched item gets ready to use its first slots
	StageCollecting                      // a dispatched item has returned its slots, and stores what it made
)

// A Failure says why an item is in the error state.
type Failure struct {
	Phase     string         `json:"phase"`
	Reason    string         `json:"reason"`
	Conflicts []ConflictInfo `json:"conflicts,omitempty"`
	Waited    time.Duration  `json:"waited,omitempty"`
	Attempts  int            `json:"attempts,omitempty"`
}

// CanceledBy returns who canceled the item and why, and false for any other failure.
func (f *Failure) CanceledBy() (by string, canceled bool) {
	if f == nil {
		return "", false
	}
	if by, canceled = strings.CutPrefix(f.Reason, CanceledPrefix); canceled {
		return by, true
	}
	return strings.CutPrefix(f.Reason, "cancelled by ") // the spelling of earlier versions
}

// CanceledPrefix starts the reason of the failure of a canceled item.
const CanceledPrefix = "canceled by "

// IsCanceled reports whether the item ended because it was canceled.
func (it *Item) IsCanceled() bool {
	_, canceled := it.Failure.CanceledBy()
	return it.Status == ItemError && canceled
}

// IsHolding reports whether an item was dispatched and holds its grant.
func (it *Item) IsHolding() bool { return it.Status == ItemDispatched }

// Aside says what a dispatched item does while it neither has the slots of its phase nor waits for
// them. It returns "" for other items.
func (it *Item) Aside() string {
	switch it.Stage {
	case StagePreparing:
		return "preparing"
	case StageCollecting:
		return "collecting"
	}
	return ""
}

// StatusSince returns when an item got its status.
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

// A QueueKey is the position of an item in the queue, in the order of its fields. This type
// is the only definition of the order: memstore compares it, and sqlstore lists the same
// columns (queueOrder). The conformance suite compares both with it. A new field that is not
// computed from stored ones also needs a column: itemColumns in sqlstore, and a migration
// for each of its databases.
type QueueKey struct {
	Precedence int    // see Item.Precedence
	Rank       int    // rank of the phase
	Place      int64  // see Item.Place
	Turn       uint64 // turn of the project among the projects of the rank
	Seq        uint64 // the item that was queued first comes first
}

// Compare returns a negative number if k comes before l.
func (k QueueKey) Compare(l QueueKey) int {
	return cmp.Or(cmp.Compare(k.Precedence, l.Precedence), cmp.Compare(k.Rank, l.Rank), cmp.Compare(k.Place, l.Place), cmp.Compare(k.Turn, l.Turn), cmp.Compare(k.Seq, l.Seq))
}

// QueueKey returns the position of an item in the queue.
func (it *Item) QueueKey() QueueKey {
	return QueueKey{it.Precedence(), it.Rank, it.Place(), it.Turn, it.Seq}
}

// CompareItems compares the QueueKeys of two items.
func CompareItems(a, b *Item) int { return a.QueueKey().Compare(b.QueueKey()) }

// Precedence returns 0 for escalated dispatched items, 1 for other dispatched items, 2
// for escalated queued items and 3 for other queued items.
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

// TurnsInRound is how many turns of each project make one round. A project gets at most a round
// ahead of another one.
const TurnsInRound = 64

// maxChain is more than two years in milliseconds. The part of a place that orders chains is
// below it.
const maxChain = 1 << 36

// Place returns the position of an item in its rank as one number. Earlier rounds of turns come
// first, and in a round the item with the longest Chain. Escalated items have the same place.
func (it *Item) Place() int64 {
	if it.Escalated {
		return 0
	}
	return int64(it.Turn/TurnsInRound)*maxChain - min(max(it.Chain.Milliseconds(), 0), maxChain-1)
}

// Clone returns a shallow copy.
func (it *Item) Clone() *Item { return new(*it) }

// Enter puts an item into a stage and ends its wait.
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

// A Worker is a process that runs items.
type Worker struct {
	ID      string         `json:"id"`
	Node    string         `json:"node"`
	Process *Process       `json:"process,omitempty"`
	Roots   []string       `json:"roots"`            // the roots that the worker's node has
	Ahead   bool           `json:"ahead,omitempty"`  // the worker prepares items before they have the slot of an agent
	Only    bool           `json:"only,omitempty"`   // the worker runs no items without a root
	Paused  bool           `json:"paused,omitempty"` // the worker starts no items now
	Pools   map[string]int `json:"pools,omitempty"`  // how many slots of each pool the items of the worker may take
	Slots   int            `json:"slots"`
	Began   time.Time      `json:"began"`
	Expires Instant        `json:"-"` // the worker counts as gone after this time
}

// TakesRoots lists the roots whose items a worker runs; "" stands for items without a root.
func (w *Worker) TakesRoots() []string {
	if w.Only {
		return w.Roots
	}
	return append([]string{""}, w.Roots...)
}

// Reaches reports whether a worker can run items of a root.
func (w *Worker) Reaches(root string) bool { return root == "" || slices.Contains(w.Roots, root) }
