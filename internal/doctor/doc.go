// Package doctor proves on this machine, in one codebase, what is enforced and what is not.
//
//	Examine ──▶ the ways to write, as internal/view has them
//	        ├─▶ a forbidden write through each that is called enforced: gate, sandbox, hooks
//	        └─▶ store, clock, file system, versions, leftovers, sessions that have not reported
//
// Invariants:
//
//  1. What is enforced is said by internal/view alone. A trial can only find it wanting: it
//     never calls a way better than the pages do.
//  2. A trial writes to nothing that is anybody's: its file has a name of its own, is held by
//     a grant of its own, and both are gone afterwards, whatever came of it. What remains is in
//     the audit trail.
//  3. What cannot be opened or read is a finding, and keeps no other from being made.
//  4. Whatever hangs is given up in time, and said to hang.
//
// The package starts no goroutines.
package doctor
