// Package store is the contract between Lockkeeper and whatever keeps its state:
// memory, an SQLite file or PostgreSQL. It holds interfaces and the structs that
// are stored, and no storage of its own.
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
// A Reader reads all four in one consistent state and a Tx changes them in one
// transaction, so a change in several facets happens as a whole: an item takes its
// locks and its status together, a landing is decided and its grant marked together.
//
// Every facet is a pair of small interfaces, such as LockReader and LockTx. What only
// some stores can do well is a separate interface that callers ask for with a type
// assertion: Express, Peeker, Watcher.
//
// One rule crosses a border: freeing a lock wakes the queued items that wait for it
// (wake.go), in the transaction that frees it. Package lock cannot import package
// sched, so the rule is here, beside the queue's contract.
//
// Package storetest holds every store against this contract.
package store
