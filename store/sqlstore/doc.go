// Package sqlstore keeps spaces in SQL: in an embedded SQLite file for the
// processes of one machine, or in PostgreSQL for several machines. One core
// (tx.go, record.go, roster.go, overlap.go, landing.go, item.go, queue.go) speaks
// SQL that both understand; sqlite*.go and postgres*.go hold what differs.
//
// Invariants:
//
//  1. Transactions of a space are serial: BEGIN IMMEDIATE in SQLite, a row lock
//     on the space taken first in PostgreSQL.
//  2. Event numbers, and with them tickets and fences, come from the space's row
//     under that lock. After a database was restored from a backup, or another
//     server took over, the numbers go on in a new epoch, above all that were
//     ever given.
//  3. A commit is durable when Update or Admit returns (WAL with
//     synchronous=FULL; synchronous_commit on). Others may see a grant of a busy
//     space before; what they make of it becomes durable after it. The one
//     exception is an uncontended release on PostgreSQL: a crash of the server
//     can undo it, and the lease ends it then.
//  4. SQLite leases run on the host's monotonic clock; a restart of the host
//     gives every held lease its whole time again, takes all workers for gone and
//     makes due whatever was to be. PostgreSQL leases run on that server's clock.
//  5. A database that is missing, corrupt, replaced, newer, on a network file
//     system or of another space is refused, and never made anew in passing. So
//     is an SQLite file that went back behind a number it has given: the file
//     that lines up its writers remembers the last one.
//  6. Bells are rung after the commit, and only when somebody is to be woken.
//  7. When a connection breaks during a commit, the outcome is looked up; what
//     the server may still begin to work on is called off before it is called
//     not done. The function given to Update or View runs once at most.
//  8. The space's row counts the items that are parked on locks, so that a
//     transaction knows without looking whether a release concerns any.
//  9. A record that a View lists again is taken from memory only if the whole row
//     was read again and is the same.
//
// Goroutines: a bell of SQLite owns one reader, which ends with the bell or the
// store; a PostgreSQL store owns one listener and its pool, which end with the
// store. A thread that waits for the turn of another, stopped process ends when
// that process goes on.
package sqlstore
