// Package store is the contract of a store, which keeps the state of Lockkeeper: in
// memory, in an SQLite file or in PostgreSQL. It has the interfaces and the structs that
// are stored. The stores themselves are packages memstore and sqlstore.
//
// A Store keeps one space. Its state falls into four facets, each a set of tables
// that one package owns. Only the owner writes to them; every package may read.
//
//	facet      tables                         owner
//	locks      records, their locks           lock
//	log        events, denials                lock
//	landings   landings, their changes        gate
//	queue      items, slots, turns, workers   sched
//
// A Reader reads all four in one consistent state, and a Tx changes them in one
// transaction. So a change in several facets happens as a whole: an item takes its
// locks and its status together, a landing is decided and its grant marked together.
//
// Every facet is one file with a pair of small interfaces, such as LockReader and LockTx
// in locks.go. Abilities that only some stores have are separate interfaces, which callers
// find by a type assertion: FastPath, Peeker, Watcher.
//
// One rule concerns two facets: freeing a lock wakes the queued items that wait for it
// (wake.go), in the transaction that frees it. Package lock cannot import package
// sched, so the rule is here, beside the queue's contract.
//
// Package storetest tests every store against this contract.
//
// The package has no goroutines and no state.
package store
