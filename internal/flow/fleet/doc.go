// Package fleet lets the machines of one space see each other and share the calls of a run: it
// stores, on the board of the store (store.Board), the machines that take part, the calls that wait
// for a machine or run on one, and the run itself.
//
//	conductor ── Offer ──▶ call: queued ── Claim ──▶ claimed ── Finish ──▶ done ──▶ used, removed
//	                          ▲                         │
//	                          └──────── Expire ◀────────┘ its machine is dead
//
// Invariants:
//
//  1. Every change replaces the version that was read. Of several machines that change a post, one
//     succeeds.
//  2. A claim is a lease: the machine renews it, and it ends by the server's clock. A call whose
//     claim has ended returns to the queue.
//  3. The version of a claim is its fence. A result is accepted only from the holder of the claim:
//     the result of an earlier one is dropped.
//  4. Large content (prompts, trees, outputs) is in git and not on the board: see package parcel.
//
// The package starts no goroutine.
package fleet
