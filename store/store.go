package store

import (
	"context"
	"time"

	"lockkeeper"
)

// Store keeps one space. All methods may be called by many goroutines.
type Store interface {
	// Space returns the id of the space.
	Space() string
	// Update runs fn in a transaction and commits if fn returns nil. If Update
	// returns an error, nothing has changed unless the error says otherwise.
	Update(ctx context.Context, fn func(Tx) error) error
	// View runs fn on a consistent state without blocking writers.
	View(ctx context.Context, fn func(Reader) error) error
	// Listen returns a Listener that Tx.Wake(id) wakes, in any process that uses the
	// space. A wake-up before Listen returns may be lost, one after it is not. Several
	// may fold into one and some may be spurious, so the caller looks at the state each
	// time.
	Listen(ctx context.Context, id string) (Listener, error)
	Close() error
}

// Read returns what fn reads in a View of a store.
func Read[T any](ctx context.Context, s Store, fn func(Reader) (T, error)) (v T, err error) {
	err = s.View(ctx, func(r Reader) error {
		v, err = fn(r)
		return err
	})
	return v, err
}

// Moment is one reading of a store's clocks.
type Moment struct {
	Lease lockkeeper.Instant // time for leases
	Wall  time.Time          // time for people
	// Skew is how far the wall clock of this host was ahead of Wall. If Wall comes from a server,
	// Skew is too small by the time that the answer took, never too large.
	Skew time.Duration
}

// Reader reads a consistent state of one space.
type Reader interface {
	// Now returns the time at which the transaction began.
	Now() Moment
	LockReader
	LogReader
	LandingReader
	QueueReader
}

// Tx is one transaction on a space. Transactions of a space are serial: what a Tx
// reads holds until it ends. The function that uses a Tx must not do file or network
// work of its own and must not wait for anything.
type Tx interface {
	Reader
	LockTx
	LogTx
	LandingTx
	QueueTx
	// Wake wakes the listeners of an id once the transaction has committed.
	Wake(id string)
	// Prune deletes events that are older than the given time, and all but the newest events; keep
	// is their number. It also deletes landings that ended and items that completed before that
	// time, and denials older than an hour. It keeps the newest item, from which new ids count. It
	// does a bounded amount of work.
	Prune(before time.Time, keep int) error
}

// A Listener is woken when something about its id changed.
type Listener interface {
	Woken() <-chan struct{}
	Close() error
}

// A FastPath is an optional ability of a Store: it runs the most common transactions
// in one round trip each, if nothing conflicts. Only a store in which a transaction of
// several steps costs several round trips needs it.
type FastPath interface {
	// TryGrant inserts a held record with the event, unless any held or waiting lock
	// conflicts with it. It fills in ticket, fence and times.
	TryGrant(ctx context.Context, rec *Record, ev lockkeeper.Event) (granted bool, err error)
	// TryRelease deletes a held record and appends the event that its holder released
	// it. It does nothing if the id is unknown or the token differs. It also does
	// nothing if a request waits on the record, or if the grant is that of a queued item.
	TryRelease(ctx context.Context, id string, tokenHash [32]byte) (done bool, err error)
	// TryRenew starts the lease of a live grant again if lease is set, and records a process if one
	// is given. It returns nil, and changes nothing, unless the grant is plainly held.
	TryRenew(ctx context.Context, id string, tokenHash [32]byte, lease bool, process *lockkeeper.Process) (*Record, error)
}

// A Peeker is an optional ability of a Store: a View that reads through the writer's cache
// and may wait for a transaction of this process. Its answers may come from different
// moments, so the caller checks them again in a transaction.
type Peeker interface {
	Peek(ctx context.Context, fn func(Reader) error) error
}

// A Watcher is an optional ability of a Store: a Listener that is woken after every change
// of the event log, by any process. A store in which this would slow down writers even
// without a listener does not have it.
type Watcher interface {
	Watch(ctx context.Context) (Listener, error)
}
