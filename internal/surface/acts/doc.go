// Package acts has one function for each action of a person on an open codebase. The
// command line, the HTTP API and the dashboard call the same functions, so they refuse and
// answer the same.
//
//	person ──▶ Decider (one flow) ──▶ flow/progress: answers, plan edits, redone phases
//	       ──▶ Undo…, LandRescued ──▶ gate: under the caller's locks, or its own
//	       ──▶ ForceRelease, Clear ──▶ lock: against the will of holders the person was shown
//	       ──▶ Runs (a server) ──▶ flow/conduct: one run at a time, inside this process
//
// Invariants:
//
//  1. An answer can carry the versions that the person saw (Seen). They are compared while
//     the unit is locked, so nothing changes in between. A difference is a
//     *progress.StaleError that says what changed, and the answer is not stored.
//  2. A refused answer does not block the others: a Verdict lists both. Decisions on items
//     of one unit are all stored, or none.
//  3. Every act that changed something informs the process that runs the flow, under the
//     person's name, before it returns. If that fails, the error says that the act is
//     stored.
//  4. The caller checks who may act. Every act has a name (By); the store refuses an act
//     without one. Starting, stopping and dropping are recorded under it.
//  5. A landing is undone only under locks on its paths. When all landings of a batch are
//     undone, its documents say so, whether the batch or its landings were named.
//  6. A Runs has at most one run, which holds the conductor's lease. After Stop has ended
//     it, or Close has returned, nothing of it runs.
//
// Goroutines: Runs owns one for the current run, which has ended when Close returns. A
// Decider has none, and one goroutine at a time can use it.
package acts
