// Package lock is the lock engine: it decides who may hold what, against any
// lockkeeper.Store. The rules live here once; stores only put transactions in
// a line and answer one indexed question, which locks overlap these.
//
//	TryAcquire ──▶ granted, or blocked with every conflict
//	Acquire ─────▶ granted, or in the line ──▶ promoted ──▶ confirmed
//	                                   └─────▶ withdrawn or timed out
//	held ──▶ Renew, Upgrade, Extend ──▶ Release
//	     └─▶ expired, recovered or force-released
//
// Invariants:
//
//  1. A request is granted iff it conflicts with no live grant and with no
//     request that waits with an earlier ticket; a request that does not wait
//     counts as the latest. So only disjoint requests overtake, and readers
//     cannot starve a writer.
//
//  2. Waiters hold nothing and holders wait for nothing: there is no deadlock.
//     Upgrade and Extend never wait; refused, they leave the hold as it was.
//
//  3. Every transaction that frees something ends with promotion: the waiters
//     that were parked on it are examined in the same transaction. A waiter is
//     parked on the latest of its blockers and examined when that one leaves,
//     which is enough because a blocker stops being one only by leaving.
//
//  4. A promotion falls with the waiter's short lease until the waiter, awake,
//     confirms it: a dead waiter hands the lock on.
//
//  5. A grant whose policy frees it by time alone blocks nobody after that time,
//     whether or not a reaper ran. One with a recorded process is freed only
//     after what a dead holder left running has been ended and seen gone, and one
//     under which a landing is decided only after the Settler has brought that to
//     its end: taken away meanwhile, it is revoking, and blocks.
//
//  6. Freeing re-reads the grant in the freeing transaction: of a heartbeat and
//     a reaper that race, exactly one wins.
//
//  7. Every change is one event in the same transaction; a refusal is an event
//     once per change of blockers. What cannot be recorded does not happen. That a
//     decided landing is done is no event: deciding it was.
//
//  8. No file, network or process work happens inside a transaction.
//
//  9. Whoever frees a path rouses the first queued item that is parked on it, in the
//     same transaction; so does a promotion for the item that reserved it.
//
// A Place is the line without the waiting, for callers with a loop of their own;
// Acquire is a Place that is attended until it is served.
//
// Goroutines: a Manager owns its reaper and one keeper per Grant whose Context
// is used or which keeps itself alive. Close stops them all and waits.
package lock
