// Package pipeline runs a flow over a codebase: it queues each phase when it is due,
// lets agents work in copies of the tree, tests what they made, and lands it through
// the gate.
//
//	advance ──▶ queue ──▶ work ──▶ document ──▶ advance …
//	               │        ├─ ask: an agent, in a workspace, in a sandbox
//	               │        ├─ check: tests and CI, with fixes
//	               │        └─ land: gate, git
//	               └─ a person: the flow stops at a gate of its own, and holds nothing
//
// Invariants:
//
//  1. What is known is in the documents of the sidecar and in the queue. After a crash a
//     unit goes on where its documents end; nothing else is needed, and nothing is done
//     twice whose document is there.
//  2. An agent works in a copy of the tree and nowhere else. What reaches the tree goes
//     through the gate, under the grant of its batch.
//  3. What the grant does not cover is taken out of the copy right after each call,
//     before anything is tested, kept, and recorded as a gap. So tests see what would
//     land, and what lands was tested.
//  4. From apply to the end of verify a batch runs under one grant. While a person
//     thinks it holds none.
//  5. What a batch depends on must be at its landing what it was in its tests. If it
//     moved, the copy is brought up to date and tested again, at most twice.
//  6. A call of an agent whose result is complete is not made again, whoever died since.
//     It is used up once what it made is stored.
//  7. Every call is counted, also one that failed. With the budget used up no call
//     starts; what runs is finished, what is queued stays queued.
//  8. One process at a time conducts the flows of a space.
//
// Goroutines: Run owns the worker, the feed and those of its items, and has ended them
// when it returns.
package pipeline
