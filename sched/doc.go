// Package sched is the queue and whoever works through it: it starts an item only
// when all its locks and all its slots are free, in the right order, and loses none.
//
//	Enqueue ──▶ ready ──▶ examined ──▶ dispatched ──▶ completed, or error
//	              ▲          │             │  ▲
//	              └── parked ◀┘            └──┘ next phase: other slots, same grant
//
// Invariants:
//
//  1. The queue is rows of the store. Whoever claims does so in one transaction: the
//     first item in order, its slots, its locks, its new status. There is no leader,
//     and nothing is known only to a process.
//
//  2. An item takes its locks and its slots together or not at all, and gives them
//     back in the transaction that ends it, which may claim the next one.
//
//  3. The order is lockkeeper.CompareItems. What cannot start is passed over: it is
//     parked on one thing that is in its way, a path, a pool, another item, and is
//     not looked at before that is freed. With no slot free nothing is looked at.
//
//  4. Freeing a thing rouses the first item parked on it. When that one does not take
//     the thing after all, the next is roused: so as long as something is parked on a
//     thing, the thing is taken, or the first of them is ready.
//
//  5. An item counts the time during which it is the first to wait for a lock, or the
//     first of its rank to wait for a slot. When both times add up to EscalateAfter, the
//     item is escalated: it comes before all queued items that were not escalated, and
//     behind those that were escalated before it. If locks block it, it also reserves
//     them in the engine's wait list, so that no later request overtakes it. Each
//     LockTimeout with the same blockers is a retry. After MaxLockRetries consecutive
//     retries the item fails, and its failure names the blockers.
//
//  6. An item runs under a live grant. When its worker vanishes the engine ends what is
//     left of it and frees the grant; whoever ticks next puts the item back, which
//     counts as an attempt. A worker that comes back too late cannot end the item. That
//     a worker was meant to end is no attempt of its items. Whoever goes on with a root
//     can reserve the locks of what was under way there before anything new starts.
//
//  7. Caps come from the configuration of whoever claims. Nothing that is submitted
//     can lift them.
//
//  8. A worker reports the end of each of its attempts once, and the attempts of one item in
//     order. It reports the state in which the attempt left the item (see After).
//
// Goroutines: a Worker owns its loop and one goroutine for each running item; Stop and
// Close wait for them. A Queue starts none.
package sched
