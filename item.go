package lockkeeper

import (
	"cmp"
	"slices"
	"time"
)

// Item is one piece of queued work: one lifecycle, which runs under one grant.
// What was asked for does not change; the rest is where it has got to.
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
	Tag          uint64        `json:"-"` // its turn among the projects of its rank
	ParkedOn     string        `json:"parked_on,omitempty"`
	RousedBy     string        `json:"-"`                  // the key it was parked on before it was made ready
	Since        Instant       `json:"-"`                  // when it was parked on a lock, or last counted a retry; 0: it is not
	Leads        Instant       `json:"-"`                  // since when it is the first to wait for a lock, or the first of its rank to wait for a slot; 0: it is not
	Blocked      time.Duration `json:"blocked,omitempty"`  // how long it has been first, before Leads
	Due          Instant       `json:"-"`                  // when somebody has to look at it; 0: never
	Blockers     uint64        `json:"-"`                  // digest of what it was last found blocked by
	Retries      int           `json:"retries"`            // lock waits over the limit, one after the other
	Attempts     int           `json:"attempts"`           // how often it was dispatched
	GrantID      string        `json:"grant_id,omitempty"` // what it runs under, or has reserved
	Worker       string        `json:"worker,omitempty"`
	Slot         int           `json:"slot,omitempty"` // of the pool of test runs: no other running item has it; 0: none
	Shuns        string        `json:"-"`              // a node whose copy is behind; it is not to be sent there
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

// ItemStage says in which line an item stands.
type ItemStage uint8

// The stages. A queued item is ready or parked; so is a dispatched one that waits
// for the slots of its next phase.
const (
	StageReady  ItemStage = iota + 1 // whoever has a slot free looks at the first of these
	StageParked                      // something it needs is taken
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

// IsHolding reports whether an item that stands in a line is a lifecycle under way.
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

// HasReserved reports whether a queued item has a place in the engine's line, or was
// promised its locks there.
func (it *Item) HasReserved() bool { return it.Status == ItemQueued && it.GrantID != "" }

// Standing is the place of an item in a line before its rank counts: lifecycles under
// way first, and the escalated before others.
func (it *Item) Standing() int {
	standing := 3
	if it.IsHolding() {
		standing -= 2
	}
	if it.Escalated {
		standing--
	}
	return standing
}

// CompareItems is the order of a line: standing, rank, turns of the projects, and who
// came first.
func CompareItems(a, b *Item) int {
	return cmp.Or(cmp.Compare(a.Standing(), b.Standing()), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Tag, b.Tag), cmp.Compare(a.Seq, b.Seq))
}

// Clone copies an item; what stays the same is shared.
func (it *Item) Clone() *Item {
	c := *it
	return &c
}

// Keys of what an item can be parked on.

// OnPath is the key of a path that somebody else has locked, for those who ask for it
// in a mode: readers and writers stand in lines of their own, because what keeps the
// first of one line waiting keeps all of that line waiting.
func OnPath(asked Mode, path string) string { return linesAt(path) + asked.String() }

// OnLock is the key of a target that somebody else has locked. Those whom a lock on a
// node keeps waiting, which covers nothing below it, stand in lines of their own, too.
func OnLock(asked Mode, held Target) string {
	if !held.Kind.Below() {
		return linesAt(held.Path) + "node/" + asked.String()
	}
	return OnPath(asked, held.Path)
}

// linesAt begins the keys of a path and of no other: no path has two slashes in it.
func linesAt(path string) string { return "path:" + path + "//" }

// KeepsWaiting reports whether a lock, while it is held, keeps those waiting who are
// parked on a key.
func (l Lock) KeepsWaiting(key string) bool {
	for asked := Read; asked <= Write; asked++ {
		if Conflicts(l.Mode, asked) && OnLock(asked, l.Target) == key {
			return true
		}
	}
	return false
}

// RousePath rouses the first of each line that a lock has kept waiting.
func RousePath(tx Tx, held Lock) error {
	lines, err := tx.ParkedKeys(linesAt(held.Path)) // most often there is none
	if err != nil {
		return err
	}
	for _, key := range lines {
		if !held.KeepsWaiting(key) {
			continue
		}
		if _, err := Rouse(tx, key); err != nil {
			return err
		}
	}
	return nil
}

// OnPool is the key of a pool without a free slot.
func OnPool(pool string) string { return "pool:" + pool }

// OnItem is the key of an item that is not completed.
func OnItem(id string) string { return "item:" + id }

// OnGrant is the key of a place in the line of the lock engine.
func OnGrant(id string) string { return "grant:" + id }

// IsOnLock reports whether a key is about locks.
func IsOnLock(key string) bool { return len(key) > 5 && (key[:5] == "path:" || key[:6] == "grant:") }

// QueueBell is the bell of those who wait for something to do.
const QueueBell = "queue"

// ItemBell is the bell of whoever runs an item.
func ItemBell(id string) string { return "item-" + id }

// Rouse makes the first item that is parked on a key ready, and reports whether
// there was one.
func Rouse(tx Tx, key string) (bool, error) {
	it, err := tx.FirstParked(key)
	if err != nil || it == nil {
		return false, err
	}
	return true, RouseItem(tx, it.Clone())
}

// RouseItem makes a parked item ready. A lifecycle under way has somebody who waits
// with it.
func RouseItem(tx Tx, it *Item) error {
	left, led := it.ParkedOn, it.Leads
	if IsOnLock(left) {
		it.StopLeading(tx.Now().Lease)
	}
	it.Enter(StageReady)
	if it.RousedBy = left; !IsOnLock(left) {
		it.Leads = led // it still waits for a slot
	}
	if it.HasReserved() {
		it.Due = tx.Now().Lease // somebody has to keep what it was promised
	}
	if it.IsHolding() {
		tx.Wake(ItemBell(it.ID))
	} else {
		tx.Wake(QueueBell)
	}
	if err := tx.SaveItem(it); err != nil || led == 0 {
		return err
	}
	return Lead(tx, left)
}

// Enter puts an item into a stage, out of whichever line it stood in.
func (it *Item) Enter(stage ItemStage) {
	it.Stage, it.ParkedOn, it.RousedBy, it.Since, it.Leads, it.Due, it.Slot = stage, "", "", 0, 0, 0, 0
}

// Lead starts the time of the first item that is parked on a lock: those behind it wait
// for their turn. Its Due is now, so that the next tick sets the right one. Lead does
// nothing for other keys: who leads the wait for a slot is up to the scheduler.
func Lead(tx Tx, key string) error {
	if !IsOnLock(key) {
		return nil
	}
	it, err := tx.FirstParked(key)
	if err != nil || it == nil || it.Leads != 0 {
		return err
	}
	next := it.Clone()
	next.Leads, next.Due = tx.Now().Lease, tx.Now().Lease
	return tx.SaveItem(next)
}

// Led is how long an item has been first in its lines, up to now.
func (it *Item) Led(now Instant) time.Duration {
	if it.Leads == 0 {
		return it.Blocked
	}
	return it.Blocked + now.Until(it.Leads)
}

// StopLeading counts the time for which an item has led its line.
func (it *Item) StopLeading(now Instant) {
	it.Blocked, it.Leads = it.Led(now), 0
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
func (w *Worker) Ways() []string {
	if w.Only {
		return w.Roots
	}
	return append([]string{""}, w.Roots...)
}

// Reaches reports whether a worker can run items of a root.
func (w *Worker) Reaches(root string) bool { return root == "" || slices.Contains(w.Roots, root) }

// ItemQuery selects a page of items by number.
type ItemQuery struct {
	After  uint64     // only items with a larger number; with Latest: smaller, 0 for no bound
	Status ItemStatus // empty: any
	Limit  int
	Latest bool // newest first
}

// Census counts items: queued ones that are ready or parked, and those that are
// dispatched, completed or in the error state.
type Census struct {
	Ready, Parked, Running, Completed, Failed int
}

// Queued is how many wait to be dispatched.
func (c Census) Queued() int { return c.Ready + c.Parked }

// QueueReader reads the queue of a space. Items it returns are shared: a caller
// that wants to change one works on a copy.
type QueueReader interface {
	// Item finds an item by its id; nil when there is none.
	Item(id string) (*Item, error)
	// ItemWithKey finds an item by its submitter's key.
	ItemWithKey(key string) (*Item, error)
	// Items answers an ItemQuery.
	Items(ItemQuery) ([]*Item, error)
	// FirstReady is the first ready item of a root, by CompareItems; nil: none.
	FirstReady(root string) (*Item, error)
	// FirstParked is the first item that is parked on a key; nil: none.
	FirstParked(key string) (*Item, error)
	// SlotLeaders lists the items that are the first of their standing and rank to wait
	// for a slot: one for each root with ready items, and one for each pool on which
	// items are parked. It is sorted by root or pool, standing and rank.
	SlotLeaders() ([]*Item, error)
	// ParkedKeys lists the keys with a prefix on which anything is parked, in order.
	ParkedKeys(prefix string) ([]string, error)
	// NextDue is the earliest Due of all items; 0: none.
	NextDue() (Instant, error)
	// Census counts the items of the space.
	Census() (Census, error)
	// SlotsTaken is how many slots of a pool are taken.
	SlotsTaken(pool string) (int, error)
	// Turn is the last turn that a project was given in a rank; 0: none.
	Turn(project string, rank int) (uint64, error)
	// Workers lists all workers by id, live or not.
	Workers() ([]Worker, error)
}

// QueueTx changes the queue of a space.
type QueueTx interface {
	// InsertItem adds an item; its id, number and key must be new.
	InsertItem(*Item) error
	// SaveItem stores what can change of an item: the fields from Phase on but
	// QueuedAt.
	SaveItem(*Item) error
	// DueItems lists items whose Due is not later than now, the earliest first.
	DueItems(now Instant, limit int) ([]*Item, error)
	// TakeSlots adds n, which may be negative, to what is taken of a pool.
	TakeSlots(pool string, n int) error
	// SetTurn stores the last turn of a project in a rank.
	SetTurn(project string, rank int, turn uint64) error
	PutWorker(Worker) error
	DeleteWorker(id string) error
	// HasParked reports whether any item may be parked on a lock. It costs nothing.
	HasParked() bool
}
