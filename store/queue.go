package store

import "lockkeeper"

// ItemQuery selects a page of items by number.
type ItemQuery struct {
	After  uint64                // only items with a larger number; with Latest: smaller, 0 for no bound
	Status lockkeeper.ItemStatus // empty: any
	Limit  int
	Latest bool // newest first
}

// Census counts items: queued ones that are ready or waiting, and those that
// are dispatched, completed or in the error state.
type Census struct {
	Ready, Waiting, Running, Completed, Failed int
}

// Queued returns how many items wait to be dispatched.
func (c Census) Queued() int { return c.Ready + c.Waiting }

// QueueReader reads the queue of a space. The items that it returns are shared: a
// caller that changes one works on a copy.
type QueueReader interface {
	// Item finds an item by its id; nil if there is none.
	Item(id string) (*lockkeeper.Item, error)
	// ItemWithKey finds an item by its submitter's key.
	ItemWithKey(key string) (*lockkeeper.Item, error)
	// Items returns one page of items.
	Items(ItemQuery) ([]*lockkeeper.Item, error)
	// FirstReady returns the first ready item of a root, by CompareItems; nil: none.
	FirstReady(root string) (*lockkeeper.Item, error)
	// FirstWaiting returns the first item that waits on a key, by CompareItems; nil: none.
	FirstWaiting(key string) (*lockkeeper.Item, error)
	// SlotLeaders lists the first item of each precedence and rank that waits for a slot:
	// for each root with ready items, and for each pool on which items wait. It is sorted
	// by root or pool, precedence and rank.
	SlotLeaders() ([]*lockkeeper.Item, error)
	// WaitKeys lists the keys with a prefix on which items wait, in order.
	WaitKeys(prefix string) ([]string, error)
	// NextCheck returns the earliest CheckAt of all items; 0: none.
	NextCheck() (lockkeeper.Instant, error)
	// Census counts the items of the space.
	Census() (Census, error)
	// SlotsTaken returns how many slots of a pool are taken.
	SlotsTaken(pool string) (int, error)
	// Turn returns the last turn that a project was given in a rank; 0: none.
	Turn(project string, rank int) (uint64, error)
	// Workers lists all workers by id, live or not.
	Workers() ([]lockkeeper.Worker, error)
}

// QueueTx changes the queue of a space.
type QueueTx interface {
	// InsertItem adds an item; its id, number and key must be new.
	InsertItem(*lockkeeper.Item) error
	// SaveItem stores the fields of an item that can change: those from Phase on, except
	// QueuedAt.
	SaveItem(*lockkeeper.Item) error
	// ItemsToCheck lists the items whose CheckAt has come, the earliest first.
	ItemsToCheck(now lockkeeper.Instant, limit int) ([]*lockkeeper.Item, error)
	// TakeSlots adds n, which may be negative, to the taken slots of a pool.
	TakeSlots(pool string, n int) error
	// SetTurn stores the last turn of a project in a rank.
	SetTurn(project string, rank int, turn uint64) error
	PutWorker(lockkeeper.Worker) error
	DeleteWorker(id string) error
	// AnyWaitsOnLock reports whether any item may wait on a lock. It reads no rows.
	AnyWaitsOnLock() bool
}
