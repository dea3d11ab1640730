// Package view computes what people see, for every surface: plain values with JSON tags,
// one per question. A page, an API route and a command that answer the same question use
// the same value, so they cannot disagree.
//
//	State     everything at once, in the format of the source documents
//	Now       what needs attention, what is stuck, what changed, what it costs;  Cockpit: what
//	          each slot does, how far the run is, when it ends, and why work failed
//	Decisions open decisions, in order;  Decision: the details of one of them
//	Board     the phase of every unit;  Unit: everything about one
//	Items     the queue: what each item waits for, and how long it took
//	Item      why an item is in its state, and what can be done about it;  Log: its output
//	CallDetail  the prompt, the answer and the cost of one call of an agent
//	Why       who holds a path, a resource or a grant, and who waits for it
//	Status    who works, holds and waits, what is kept, and the queue, for the command line
//	Locks     who holds what, who waits for whom, who wrote last
//	Timeline  when each piece of work ran, waited and landed
//	Run       what a flow did, what was refused, what landed;  LandingDetail: one landing, with
//	          its diff
//	Rescue    content that did not land and was kept;  Rescued: one entry, with its diff
//	Nodes     which machines take part, and which protections are active
//	Audit     who did what
//
// Invariants:
//
//  1. Nothing here changes a lock, a row or a document.
//  2. Locks, queue and log in one answer are of one moment, that of its Seq. A client that
//     follows the event log from Seq misses nothing. Documents are read after that moment,
//     so they can be newer and never older.
//  3. A unit's documents are read again only if their names, sizes or times changed. Files
//     changed within the last tick of the disk's clock are always read again.
//  4. A unit or entry that cannot be read is shown as unreadable and hides no other.
//  5. Text that agents, files and people wrote is returned unchanged. The surface that
//     shows it must escape it.
//  6. Concurrent callers share one read, which never began before they asked. So callers
//     always see their own changes.
//  7. No list is null in JSON. Unbounded lists are paged or truncated, and say so.
//
// Goroutines: none outlives a call.
package view
