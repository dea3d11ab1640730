// Package lockkeeper is the vocabulary of Lockkeeper: the words that every
// other package uses and none redefines. It is pure: no goroutines, no input
// or output, no clock of its own.
//
// A Space is one lock namespace, usually one codebase. In it, holders ask with
// a Request for a set of Locks (a Target and a Mode each) and are given all of
// them at once as a Grant, or none. Each change of state is an Event, stored
// in the same transaction as the change.
//
// Invariants, held by package lock on top of any Store:
//
//  1. No two live grants of one space conflict: their targets do not overlap,
//     or their modes go together.
//  2. A request is granted as a whole or not at all.
//  3. Fences rise strictly within a space and are never used twice.
//  4. A waiting request holds nothing, and a holder waits for nothing.
//  5. Conflicts and Target.Overlaps are symmetric, and are the only place
//     where the two rules they state are written down.
package lockkeeper
