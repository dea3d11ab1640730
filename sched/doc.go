// Package sched is the queue and its workers. It starts an item only if all its locks
// and all its slots are free, in the right order, and loses none.
//
//	Enqueue ──▶ ready ──▶ examined ──▶ dispatched ──▶ completed, or error
//	              ▲           │            │  ▲
//	              └─ waiting ◀┘            └──┘ next phase: other slots, same grant
//
//	dispatched ahead: preparing ──▶ ready, waiting ──▶ running ──▶ collecting
//
//	queue, why              Enqueue; reading the queue and why an item waits
//	dispatch, job, worker   taking an item; running and ending it; the loop of a worker
//	tick, escalate          time limits and vanished workers; items that waited too long
//	change, report          retry and cancel; how an attempt ended
//	options                 limits of the pools, and the rank of each phase
//
// Invariants:
//
//  1. The queue is rows of the store. A worker takes an item in one transaction: the
//     first item in order, its slots, its locks and its new status. There is no leader,
//     and no state that only one process knows.
//
//  2. An item takes its locks and its slots together or not at all. It releases them
//     in the transaction that ends it, which may dispatch the next item. If its worker
//     prepares ahead, an item that needs an agent takes its locks with a slot of PoolPrepare,
//     and later exchanges this slot for a slot of PoolAgent. It releases that slot as soon as
//     the agent has ended (ReturnSlots). While the worker is paused or stopped, no item makes
//     the exchange.
//
//  3. The order is lockkeeper.CompareItems, by lockkeeper.QueueKey. An item that cannot start
//     is passed over: it waits on one key (a path, a pool, another item) and is not examined
//     before that key is freed. While no slot is free, no item is examined.
//
//  4. Freeing a key wakes the first item that waits on it. If the woken item does not take
//     what was freed, it wakes the next one. So while items wait on a key, the key is
//     taken or the first of them is ready. Items of different roots have different keys for
//     one path or pool. So items that no worker takes keep no others waiting, and ready work
//     and a free slot exist together only for a moment (Stalled).
//
//  5. An item counts the time during which it is the first to wait for a lock, or the
//     first of its rank to wait for a slot. When both times add up to EscalateAfter, the
//     item is escalated: it comes before all queued items that were not escalated, and
//     behind those that were escalated before it. If a later request blocks it
//     nevertheless, it reserves its locks in the engine's wait list, so that no further
//     request overtakes it. It then starts when the work that was dispatched before the
//     reservation has ended. Each LockTimeout with the same blockers is a retry. After
//     MaxLockRetries consecutive retries the item fails, and its failure names the blockers.
//
//  6. An item runs under a live grant. If its worker vanishes, the engine ends the
//     processes that it left and frees the grant, and the next tick returns the item to
//     the queue, which counts as an attempt. A worker that comes back too late cannot end
//     the item. A planned stop of a worker does not count as an attempt. A process that
//     resumes a root can reserve the locks of the items that were running there before
//     anything new starts (ReserveBegun).
//
//  7. The limits come from the configuration of the worker that takes the item. No
//     submitted item can raise them.
//
//  8. A worker reports the end of each of its attempts once, and the attempts of one item
//     in order. It reports the state in which the attempt left the item (see ItemAfter).
//
// Goroutines: a Worker owns its loop and one goroutine for each running item. Stop and
// Close wait for them. A Queue starts none.
package sched
