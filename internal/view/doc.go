// Package view says what a person sees, for every surface: plain values with JSON tags,
// one question each. A page, a route and a command that answer the same question ask
// here, so that they cannot disagree.
//
//	State     everything at once, as the documents have it
//	Now       what needs me, what is stuck, what changed, what it costs
//	Queue     what is to be decided, in order;  Gate: all that is known of one of them
//	Board     where every unit is
//	Item      why a piece of work is where it is, and what can be done about it
//	Locks     who holds what, who waits for whom, who wrote last
//	Timeline  where the time went
//	Run       what a flow did, what was refused, what landed
//	Rescue    what could not land, and is kept;  Rescued: one of them, with its diff
//	Nodes     who takes part, and what is enforced here
//	Audit     who did what
//
// Invariants:
//
//  1. Nothing here changes anything: no lock, no row, no document.
//  2. What is shown of locks, queue and log in one answer is of one moment, that of its
//     Seq: whoever follows the event log from there on misses nothing. Documents are read
//     after that moment, so they may be younger than it, never older.
//  3. A unit that was read before is not read again unless its files changed, by their
//     names, sizes and times. Files that changed just now are not relied on, since they
//     may change again within a tick of the disk's clock.
//  4. What cannot be read of one unit, or one entry, is shown as that and hides no other.
//  5. Texts that agents, files and people wrote are handed on as they are: whoever shows
//     them makes them harmless.
//  6. Callers who want the same at the same time share one look, and never one that began
//     before they asked: whoever has just acted sees what they did.
//  7. No list is null in JSON, and those that may grow without bound are paged or cut,
//     and say so.
//
// Goroutines: none outlives a call.
package view
