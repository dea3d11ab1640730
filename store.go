package lockkeeper

import (
	"cmp"
	"context"
	"math"
	"time"
)

// Instant is a point on a store's lease clock, in nanoseconds from an origin
// that only the store knows. Leases are compared on it and on nothing else: on
// one host it is the monotonic clock, so a jump of the wall clock or a laptop
// that slept frees nothing.
type Instant int64

// Add is the instant d later.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Until is how long it takes from now to i.
func (i Instant) Until(now Instant) time.Duration { return time.Duration(i - now) }

// Moment is one reading of a store's clocks.
type Moment struct {
	Lease Instant   // decides
	Wall  time.Time // is shown
}

// State is how far a request has come.
type State uint8

// The states. A Promoted request is a grant that its waiter has not confirmed
// yet: it blocks others like a held one, and falls with the waiter's lease. A
// Landing grant is held, and a landing under it is decided and not yet known to
// be done. A Revoking one is taken away and blocks until such a landing is.
const (
	StateWaiting State = iota + 1
	StatePromoted
	StateHeld
	StateLanding
	StateRevoking
)

// Confirmed reports whether a request has been given to its holder.
func (s State) Confirmed() bool { return s >= StateHeld }

// Record is a request as it is stored, from its place in the line to its
// release. Its Grant never carries the token, only TokenHash does.
type Record struct {
	Grant
	TokenHash [32]byte
	Ticket    uint64 // its place in the line; unique in the space
	State     State
	TTL       time.Duration // 0: never expires once held
	Expires   Instant       // 0: never
	Heartbeat Instant
	ParkedOn  uint64 // of a waiting request: the ticket of one blocker
	Blockers  uint64 // of a waiting request: digest of the blockers last told
}

// Claim says that a live holder stands behind its grants: the registry that
// gives "no active job claims it" its meaning.
type Claim struct {
	ID      string // unique per claimant
	Holder  string
	Process *Process
	Expires Instant // a claim without a judgeable process lives until then
}

// Query asks which locks stand in the way of Locks.
type Query struct {
	Locks  []Lock
	Before uint64 // requests waiting with a smaller ticket count; HeldOnly or AnyTicket for none or all
	Except uint64 // the ticket of the asker itself
	Limit  int    // at most so many answers; 0: no limit
}

// Counts reports whether a record can stand in the way of the asker at all:
// whoever holds does, and whoever waits with an earlier ticket.
func (q Query) Counts(r *Record) bool {
	return r.Ticket != q.Except && (r.State != StateWaiting || r.Ticket < q.Before)
}

// Bounds for Query.Before.
const (
	HeldOnly  uint64 = 0
	AnyTicket uint64 = math.MaxInt64 // fits every store's integers
)

// Overlap is one lock that stands in the way of an asked one.
type Overlap struct {
	Asked  Lock
	Lock   Lock
	Record *Record
}

// Compare is the order in which overlaps are answered: latest ticket first.
func (o Overlap) Compare(p Overlap) int {
	return cmp.Or(cmp.Compare(p.Record.Ticket, o.Record.Ticket), cmp.Compare(o.Asked.Path, p.Asked.Path), cmp.Compare(o.Lock.Path, p.Lock.Path))
}

// EventQuery selects a page of events by sequence number.
type EventQuery struct {
	After  uint64 // only events with a larger number
	Before uint64 // only events with a smaller number; 0: no bound
	Limit  int
	Latest bool // newest first instead of oldest first
}

// Reader reads a consistent state of one space. Records it returns are shared:
// a caller that wants to change one works on a copy.
type Reader interface {
	QueueReader
	Now() Moment
	// Get finds a record by its id; nil when there is none.
	Get(id string) (*Record, error)
	// Overlapping answers a Query with conflicting locks, latest ticket first,
	// and whether the limit cut the answer. It does not look at expiry.
	Overlapping(Query) (found []Overlap, more bool, err error)
	// List pages through all records by rising ticket.
	List(after uint64, limit int) ([]*Record, error)
	// Events pages through the log.
	Events(EventQuery) ([]Event, error)
	// Claims lists the claims of a holder, live or not.
	Claims(holder string) ([]Claim, error)
	// Landings answers a LandingQuery. What it returns is the caller's.
	Landings(LandingQuery) ([]*Landing, error)
	// Landed finds, for each path that one changed, the newest landing that was
	// not undone and what it left there. With a grant, only its landings count.
	Landed(grantID string, paths ...string) (map[string]Left, error)
}

// Tx is one transaction on a space. Transactions of a space are serial: what a
// Tx reads holds until it ends. It must not do file or network work of its own
// and must not wait for anything.
type Tx interface {
	Reader
	QueueTx
	// Append adds an event, numbers it and returns the number. Numbers rise
	// strictly and are never reused, also when earlier events were pruned.
	Append(Event) (seq uint64, err error)
	// Insert adds a record and keeps it; its ticket must be new.
	Insert(*Record) error
	// Save stores every field of a record but its locks, which must be unchanged.
	Save(*Record) error
	// SetLocks replaces the locks of a record.
	SetLocks(*Record, []Lock) error
	// Delete removes a record and its locks.
	Delete(*Record) error
	// Parked lists the waiting records parked on a ticket, by rising ticket.
	Parked(on uint64) ([]*Record, error)
	// Denial returns the digest of blockers last told under key; 0 for none.
	Denial(key string) (uint64, error)
	// SetDenial stores it.
	SetDenial(key string, digest uint64) error
	// PutClaim stores a claim, replacing one with the same id.
	PutClaim(Claim) error
	// DeleteClaim removes one; unknown ids are harmless.
	DeleteClaim(id string) error
	// InsertLanding adds a landing; its number must be new.
	InsertLanding(*Landing) error
	// TakeLanding gives a decided landing another taker.
	TakeLanding(Ending) error
	// EndLanding ends a decided landing; one that has ended, or has another taker,
	// stays as it is.
	EndLanding(Ending, LandingState) error
	// Prune drops events older than the time or beyond the newest keep, landings
	// older than the time that are not decided any more, items completed before
	// it, and denials older than an hour. It does a bounded amount of work.
	Prune(before time.Time, keep int) error
	// Wake rings the bell of an id once the transaction has committed.
	Wake(id string)
}

// Store keeps one space. All methods may be called by many goroutines.
type Store interface {
	// Space is the id of the space.
	Space() string
	// Update runs fn in a transaction and commits when fn returns nil; when
	// Update returns an error nothing has changed, except as that error says.
	Update(ctx context.Context, fn func(Tx) error) error
	// View runs fn on a consistent state without blocking writers.
	View(ctx context.Context, fn func(Reader) error) error
	// Bell is rung by Tx.Wake(id) of any process that uses the space. A ring
	// before Bell returns may be lost, one after it is not; rings may fold into
	// one and may be spurious, so a listener looks at the state each time.
	Bell(ctx context.Context, id string) (Bell, error)
	Close() error
}

// Bell tells one listener that something about its id changed.
type Bell interface {
	Ring() <-chan struct{}
	Close() error
}

// Express is what a store may offer beside Update: the two commonest steps,
// when nobody stands in the way, as one act. Only a store for which a
// transaction of several steps costs several round trips needs it.
type Express interface {
	// Admit inserts a held record with the event, unless any held or waiting lock
	// conflicts with it. It fills in ticket, fence and times.
	Admit(ctx context.Context, rec *Record, ev Event) (granted bool, err error)
	// Dismiss deletes a held record and adds the event that its holder released
	// it, unless somebody is parked on it or may listen for its end, the id is
	// unknown or the token differs. Those with a process may listen.
	Dismiss(ctx context.Context, id string, tokenHash [32]byte) (done bool, err error)
}

// Peeker is what a store may offer beside View: a look at a few rows that may wait
// for a transaction of this process, and so finds warm what the last one touched.
// What it answers need not be of one moment, so it is for looks before a
// transaction that looks again.
type Peeker interface {
	Peek(ctx context.Context, fn func(Reader) error) error
}

// Watcher is what a store may offer besides: a bell that is rung after every change
// of the event log, by whichever process. Where it would cost writers something while
// nobody watches, a store does not have it.
type Watcher interface {
	Watch(ctx context.Context) (Bell, error)
}
