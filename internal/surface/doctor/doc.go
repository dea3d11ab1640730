// Package doctor checks on this machine, in one codebase, what is enforced and what is not.
//
//	Examine ──▶ the ways to write, as internal/surface/view lists them
//	        ├─▶ a forbidden write through each way that is called enforced: gate, sandbox, hooks
//	        └─▶ store, clock, file system, versions, leftovers, sessions that have not reported
//
// Invariants:
//
//  1. Only internal/surface/view says what is enforced. A trial can lower its verdict and
//     never raises it.
//  2. A trial writes only its own file, under its own name and its own grant. Both are
//     removed afterwards, whatever the result. Only the audit trail keeps a record.
//  3. Anything that cannot be opened or read is a finding, and does not stop other checks.
//  4. A check that hangs is abandoned after a time limit and reported as hanging.
//
// The package starts no goroutines.
package doctor
