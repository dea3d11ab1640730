// Package lease keeps processes apart by a lease file, without a store: whoever
// made the file holds the lease, until it releases it, or until its time and a
// grace period are past and the next one breaks it. The file is that of a Python
// tool, which may contend for it at the same time:
//
//	{"owner": "tidy_up", "token": "…", "pid": 12345, "created_at": "2026-01-03T12:00:00Z",
//	 "expires_at": "2026-01-03T12:30:00Z", "last_renewed_at": "2026-01-03T12:15:00Z"}
//
// That tool creates the file exclusively and then writes into it, renews by
// replacing it, and breaks or releases by unlinking it, each after a look. What
// follows from that for others is in docs/safety.md.
//
// Invariants:
//
//  1. The file appears with its payload complete: it is written and fsynced under
//     another name, and moved to its own without replacing anything.
//  2. A file is broken or renewed by exchanging it with its successor in one step,
//     so that the name is never free in between. What was displaced must be, byte
//     for byte and as the same file, what was judged before. If it is not, it is put
//     back and the attempt has failed. A release takes the file aside in the same
//     way, and looks before it removes it.
//  3. Never two of ours. All that this package does to a file happens under a lock
//     of the kernel on a guard file beside it, and the guard records who of ours
//     holds the lease. Whatever others do to the lease file, the next of ours waits
//     until that one released it, or until its time and the grace period are past.
//  4. A well-formed file is broken only when its expiry and the grace period are
//     past: by the wall clock when it is seen for the first time, and from there on by
//     the boot's own clock, which nobody sets and which stands still while the host
//     sleeps. One of ours is seen when it is written. So a step of the wall clock frees
//     nothing that one of ours had seen, and a process that is gone, or whose number is
//     another's by now, frees nothing at all.
//  5. A malformed file, an empty one too, is broken only when it was not modified
//     for two seconds: its maker may be between creating and writing it. Its bytes are
//     kept beside it. What cannot be read counts as held by somebody unknown. What is
//     no regular file, or does not look like a lease file by its name and holds
//     something else, is refused and left alone.
//  6. Nothing is broken without a line that says who, when, why and what was checked,
//     written before.
//  7. Readers share a lease as a group: to others it is one file with one token,
//     that lasts as long as the last of them. The guard records who they are.
//  8. Several leases of one holder are taken in one order, and released in reverse.
//
// Beside a file x.lock lie .x.lock.guard, and while something is under way
// .x.lock.new or .x.lock.old; x.lock.corrupt.<time> and x.lock.audit.jsonl where
// something was broken.
//
// A Lease may be used by several goroutines. Keep owns one, which ends before its
// stop function returns; nothing else starts any. Package durable's Disk needs
// renameat2, and so does this package: a file system that cannot exchange two files
// is refused.
package lease
