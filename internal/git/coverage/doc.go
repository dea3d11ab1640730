// Package coverage finds how each change that git sees came about: the gate landed it, a
// holder of a write lock made it, or neither.
//
//	git status ──▶ Find ──▶ what the gate left there   ──▶ Landed
//	                   ──▶ who holds the path now      ──▶ Covered
//	                   ──▶ the event log, newest first ──▶ Covered, or Uncovered
//	                   ──▶ the caller, and who holds the path now ──▶ Yours, Held, or free
//
// Invariants:
//
//  1. A change is Covered only if a grant held its path for writing at the time when the
//     file was last modified. Forged file times are not detected: this is a help for honest
//     users.
//  2. Content that is only staged has no time of its own, so no past lock covers it.
//  3. A change of a path that another holder has for writing is never the caller's, even
//     if the caller made it.
//  4. A new file with the content of a missing file that another holder has for writing is not
//     the caller's either, as git finds renames. Content that the gate landed is.
//  5. If the log does not reach back far enough, the change says so (BeforeLog).
//
// The package changes nothing and starts no goroutines.
package coverage
