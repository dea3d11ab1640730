// Package run runs a flow over a codebase: it queues each phase, lets agents work in
// workspaces, tests their changes, and lands them through the gate.
//
//	advance ──▶ queue ──▶ execution ──▶ document ──▶ advance …
//	               │        ├─ ask: an agent, in a workspace, in a sandbox
//	               │        ├─ check: commands, and agents that fix what they find
//	               │        └─ land: gate, git
//	               └─ a decision: the unit waits for a person and holds nothing
//
//	conduct.go             the loop: what is due, what is idle, when to stop
//	steps.go               the code of every step; a phase of a flow names its step
//	queue.go               work items, their keys and locks, and how they are executed
//	batch.go               a batch from its first phase to its landing
//	ask.go, call.go        calls of agents, their records, the budget
//	trial.go               the test commands on the unchanged tree, before a run
//	overlay.go, state.go   the state of a run for viewers
//	durations.go, expect.go  what later work will take, from recorded calls
//
// A run can use other machines (package fleet). The conductor is the machine that runs the flow. It
// sends single calls to the machines that joined:
//
//	crew.go      on the conductor: the machines, and the calls that they carry out
//	place.go     where a call runs: in a slot here, or on another machine
//	remote.go    sends a call to another machine, and applies its result in the workspace
//	joiner.go    on a machine that joined: takes calls, and renews its claims
//	joincall.go  on a machine that joined: carries out one call, and sends the result
//
// Invariants:
//
//  1. All state is in the documents and in the queue. After a crash a unit continues after
//     its last document, and no phase with a document runs again.
//  2. Agents change workspaces only. Changes reach the tree through the gate, under the
//     grant of their batch.
//  3. After each call, changes that the grant does not cover are removed from the
//     workspace, kept, and recorded as gaps, before anything is tested. So the tests see
//     exactly what would land.
//  4. From its first to its last phase a batch holds one grant. While it waits for a
//     person it holds none.
//  5. If something that a batch depends on changed after its tests, the workspace is
//     updated and the batch is tested again, at most Limits.Rechecks times.
//  6. A complete call of an agent is not repeated after a crash. It is used up when its
//     outcome is stored.
//  7. Every call counts against the budget, failed ones included. When the budget is used
//     up, no call starts, running calls finish, and queued work stays queued.
//  8. Only one process runs the flows of a codebase at a time, on one machine. Other machines
//     carry out calls of it, and change nothing but their own workspaces.
//  9. A slot is held from before the start of a command to after the end of its last process,
//     and no longer. Prepare comes before it, and reading and storing the changes after it.
//
// Goroutines: Run owns the worker, the feed and the executions of work items, and ends
// them before it returns.
package run
