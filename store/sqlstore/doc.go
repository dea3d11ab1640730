// Package sqlstore keeps spaces in SQL: in an embedded SQLite file for the processes of
// one machine, or in PostgreSQL for several machines. The core (tx.go, record.go,
// list.go, overlap.go, landing.go, item.go, queue.go) uses SQL that both understand.
// sqlite*.go and postgres*.go hold what differs.
//
// Invariants:
//
//  1. Transactions of a space are serial: BEGIN IMMEDIATE in SQLite, and in PostgreSQL a
//     lock on the row of the space, which is taken first.
//  2. Event numbers, and with them tickets and fences, come from the space's row under
//     that lock. After a database was restored from a backup, or another server took
//     over, the numbers continue in a new epoch, above all that were ever given. Every
//     transaction on PostgreSQL that gives a number compares the start of the server, the
//     timeline of its current WAL, and the table, so the first grant is in the new epoch.
//  3. A commit is durable when Update or TryGrant returns (WAL with synchronous=FULL;
//     synchronous_commit on). Others may see a grant of a busy space before that, and
//     what they commit on top of it becomes durable after it. The one exception is an
//     uncontended release on PostgreSQL: a crash of the server can undo it, and then the
//     lease ends it.
//  4. SQLite leases run on the host's monotonic clock. After a restart of the host every
//     held lease starts again in full, all workers count as gone, and every item with a
//     check time is checked at once. PostgreSQL leases run on the server's clock, and start
//     again in full when another server, or the same one after a restart, has the space.
//  5. A database that is missing, corrupt, replaced, newer, on a network file system or
//     of another space is refused, and never created in passing. So is an SQLite file
//     whose last number is lower than one it has given: the file that orders its writers
//     remembers the last number.
//  6. Listeners are woken after the commit. A listener that gets no notifications from the
//     server is woken every second, so its owner polls.
//  7. If a connection breaks during a commit, the outcome is looked up. A commit that the
//     server may still execute is canceled before it is reported as failed. The function
//     given to Update or View runs at most once.
//  8. The space's row counts the items that wait on locks, so that a transaction knows
//     without a query whether a release concerns any.
//  9. A View takes a record that it lists again from memory only if the whole row was
//     read again and is the same.
//  10. Acquiring, renewing and releasing a lock that nothing blocks takes one
//     round trip to PostgreSQL each, and holds no lock while a message is under way.
//  11. A PostgreSQL store keeps no connection for longer than some seconds without use,
//     except for notifications, and those only if the server has half of its connections
//     free. Behind a pooler that shares sessions, nothing is left in a session.
//
// Goroutines: a listener of SQLite owns one reader, which ends with the listener or the
// store. A PostgreSQL store owns one subscription and its pool, which end with the store.
// A thread that waits for the turn of another, stopped process ends when that process
// continues.
package sqlstore
