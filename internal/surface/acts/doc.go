// Package acts is what a person does to an open codebase, one function for each act, for
// every surface: the command line, the HTTP API and the dashboard say the same with it and
// get the same answers.
//
//	person ──▶ Desk  (one flow) ──▶ dossier: answers, plans, what is done anew
//	       ──▶ Undo…, LandRescued ──▶ gate: under locks of its own, or of the caller
//	       ──▶ ForceRelease, Clear ──▶ lock: against the will of holders, whom they were shown
//	       ──▶ Runs  (a server) ──▶ flow/conduct: one run at a time, inside this process
//
// Invariants:
//
//  1. What a person answers is held against what they saw, if they say so (Seen): inside
//     the turn of the unit, so nothing can change in between. Something else is a
//     *dossier.StaleError that says what is different now, and nothing is changed.
//  2. One answer that is refused does not keep the others from being given: a Verdict has
//     both. Decisions on items of one unit are all stored, or none.
//  3. Every act that changed something tells whoever conducts the flow, under the name of
//     the person, before it returns. If that fails the error says that the act is stored.
//  4. Whether somebody may act is the caller's to know. Here every act has a name (By), and
//     one without is refused by what stores it. That a run was started or told to end, and
//     what was dropped, is recorded under it.
//  5. What landed is taken back only under locks on its paths. When all landings of a batch
//     are taken back its documents say so, whether it was named, or they were by their
//     numbers.
//  6. Of a Runs one run is under way at most, and it holds the lease of the conductor for as
//     long. When Stop was told to end it, or Close has returned, nothing of it runs.
//
// Goroutines: Runs owns one for the run that is under way, and has ended it when Close
// returns. A Desk has none, and may be used by one goroutine at a time.
package acts
