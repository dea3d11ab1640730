package store

import (
	"cmp"
	"math"
	"time"

	"lockkeeper"
)

// LockReader reads the requests of a space, waiting or granted. The records that it
// returns are shared: a caller that changes one must work on a copy.
type LockReader interface {
	// Get finds a record by its id; nil if there is none.
	Get(id string) (*Record, error)
	// Overlapping returns the locks that conflict with a Query, latest ticket first,
	// and whether the limit cut the list. It does not look at expiry.
	Overlapping(Query) (found []Overlap, more bool, err error)
	// List pages through all records by rising ticket.
	List(after uint64, limit int) ([]*Record, error)
}

// LockTx changes the requests of a space.
type LockTx interface {
	// Insert adds a record and keeps it; its ticket must be new.
	Insert(*Record) error
	// Save stores every field of a record except its locks, which must be unchanged.
	Save(*Record) error
	// SetLocks replaces the locks of a record.
	SetLocks(*Record, []lockkeeper.Lock) error
	// Delete removes a record and its locks.
	Delete(*Record) error
	// Waiters lists the records that wait on a ticket, by rising ticket.
	Waiters(on uint64) ([]*Record, error)
}

// State is the progress of a request.
type State uint8

// The states. A Promoted request is a grant that its waiter has not confirmed yet: it
// blocks others like a held one, and ends with the waiter's lease. A Landing grant is
// held, and a landing under it is decided and not yet known to be complete. A Revoking
// grant was taken from its holder, and blocks others until that landing is complete.
const (
	StateWaiting State = iota + 1
	StatePromoted
	StateHeld
	StateLanding
	StateRevoking
)

// Confirmed reports whether a request has been given to its holder.
func (s State) Confirmed() bool { return s >= StateHeld }

// A Record is a request as it is stored, from its place in the wait list to its
// release. Its Grant never carries the token; TokenHash stands for it.
type Record struct {
	lockkeeper.Grant
	TokenHash [32]byte
	Ticket    uint64 // position of the request in the wait list; unique in the space
	State     State
	TTL       time.Duration      // 0: never expires once held
	Expires   lockkeeper.Instant // 0: never
	Heartbeat lockkeeper.Instant
	WaitsOn   uint64 // for a waiting request, the ticket of one blocker
	Blockers  uint64 // for a waiting request, the digest of the blockers in its last event
}

// A Query asks which locks conflict with Locks.
type Query struct {
	Locks  []lockkeeper.Lock
	Before uint64 // waiting requests are included if their ticket is smaller; HeldOnly: none, AnyTicket: all
	Except uint64 // the ticket of the request itself
	Limit  int    // maximum number of answers; 0: no limit
}

// Counts reports whether a record can block the request at all. A granted record can, and so
// can a waiting one with an earlier ticket.
func (q Query) Counts(r *Record) bool {
	return r.Ticket != q.Except && (r.State != StateWaiting || r.Ticket < q.Before)
}

// Bounds for Query.Before.
const (
	HeldOnly  uint64 = 0
	AnyTicket uint64 = math.MaxInt64 // fits every store's integers
)

// An Overlap is one lock that conflicts with a requested one.
type Overlap struct {
	Asked  lockkeeper.Lock
	Lock   lockkeeper.Lock
	Record *Record
}

// Compare is the order in which overlaps are returned: latest ticket first.
func (o Overlap) Compare(p Overlap) int {
	return cmp.Or(cmp.Compare(p.Record.Ticket, o.Record.Ticket), cmp.Compare(o.Asked.Path, p.Asked.Path), cmp.Compare(o.Lock.Path, p.Lock.Path))
}
