// Package memstore keeps a space in memory, for one process, for tests and for
// simulations. A trie of path segments finds the locks that overlap others. The time
// depends on the depth of the paths, not on the number of locks. Sorted lists in short
// runs find the first item of the queue, however long it is.
//
// Invariants:
//
//  1. One mutex serializes every transaction, reading or writing.
//  2. Each node of the trie counts, by mode, the locks at its path, those of them that
//     cover the paths below, and all locks strictly below it. A node without locks at or
//     below it does not exist.
//  3. Records and items are immutable once stored. A change stores a new one, so a caller
//     may read what it was given after the transaction.
//  4. A transaction that fails, or panics, is undone completely.
//  5. Listeners are woken after the mutex is released.
//
// The package starts no goroutines.
package memstore
