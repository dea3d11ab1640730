// Package lock is the lock engine: it decides who holds which locks, on top of any
// store.Store. Every rule is here, once. A store only runs serial transactions and answers
// one indexed query: which locks overlap a given set.
//
//	TryAcquire ──▶ granted, or blocked with every conflict
//	Acquire ─────▶ granted, or in the wait list ──▶ promoted ──▶ confirmed
//	                                        └─────▶ withdrawn or timed out
//	held ──▶ Renew, Upgrade, Extend ──▶ Release
//	     └─▶ expired, recovered or force-released
//
// Other packages keep rows of their own beside the locks and change both in one
// transaction: see Manager.Update and Tx.
//
//	acquire, wait              a request is granted, refused, or waits and is granted later
//	change, lease              Upgrade and Extend; Release and Renew
//	recover                    grants that expired, or whose holder is dead; force-release
//	transition, tx             every change of a record; transactions for other packages
//	grant, inspect, landing    a held grant and its keeper; reading; landings under a grant
//
// Which modes and targets conflict is in package lockkeeper (Conflicts, Target.Overlaps).
//
// Invariants:
//
//  1. A request is granted if and only if it conflicts with no live grant and with no
//     request that waits with an earlier ticket. A request that does not wait counts as
//     the latest. So only disjoint requests overtake, and readers cannot starve a writer.
//
//  2. A waiting request holds nothing and a holder waits for nothing, so there is no
//     deadlock. Upgrade and Extend never wait. If they are refused, the grant stays as
//     it was.
//
//  3. Every transaction that frees a lock examines the requests that waited on it before
//     it commits. A request waits on the latest of its blockers and is examined when that
//     one leaves. This is enough because a blocker stops being one only by leaving.
//
//  4. A promoted request is held for its waiter until the waiter confirms it. If the
//     waiter's short lease expires first, the next request is examined.
//
//  5. A grant whose policy frees it by time alone blocks no request after that time, whether
//     or not a reaper ran. A grant with a recorded process is freed only after the
//     processes that a dead holder left behind have ended. A grant with an open landing
//     is freed only after the landing is complete or rolled back
//     (Options.RecoverLandings); until then it is revoking, and blocks.
//
//  6. The transaction that frees a grant reads it again. If a heartbeat and a reaper race,
//     exactly one wins.
//
//  7. Every change appends one event in the same transaction. A refusal appends one
//     event per change of its blockers. A change that cannot be recorded does not happen.
//
//  8. No file, network or process work happens inside a transaction.
//
//  9. A transaction that frees a path wakes the first queued item that waits on it. A
//     promotion wakes the item that reserved it.
//
// Goroutines: a Manager owns its reaper, and one keeper for each Grant whose Context is
// used or that keeps itself alive. Close stops them all and waits for them.
package lock
