// Package memstore keeps a space in memory: for one process, for tests and for
// simulations. A trie of path segments answers which locks overlap these in
// time that depends on the depth of the paths and not on how many are held; sorted
// lists in short runs give the first item of a line, however long it is.
//
// Invariants:
//
//  1. One mutex serialises every transaction, reading or writing.
//  2. Each node of the trie counts, by mode, the locks at its path, those of
//     them that cover what is below, and all locks strictly below it; a node
//     with no locks at or below it does not exist.
//  3. Records and items are immutable once stored: a change stores a new one, so
//     whoever was handed one may read it after the transaction.
//  4. A transaction that fails, or panics, is undone completely.
//  5. Bells are rung after the mutex is released.
//
// The package starts no goroutines.
package memstore
