// Package lease implements exclusive and shared locks with a time limit on a lease file,
// without a store. The process that created the file is its holder until it releases the
// file. After the expiry and a grace period, another process may break it. A Python tool
// uses the same files and may compete for them at the same time:
//
//	{"owner": "tidy_up", "token": "…", "pid": 12345, "created_at": "2026-01-03T12:00:00Z",
//	 "expires_at": "2026-01-03T12:30:00Z", "last_renewed_at": "2026-01-03T12:15:00Z"}
//
// That tool creates the file exclusively and then writes into it. It renews by replacing
// the file, and breaks or releases by unlinking it, each after a separate check.
// docs/safety.md describes the consequences. Below, a Lockkeeper holder is one that uses
// this package; every other program is a foreign tool.
//
// Invariants:
//
//  1. The file appears with its payload complete: it is written and fsynced under
//     another name, and moved to its own without replacing anything.
//  2. A file is broken or renewed by exchanging it with its successor in one step, so
//     the name is never free in between. The displaced file must be the same file, with
//     the same bytes, that was judged before. Otherwise it is restored and the attempt
//     fails. A release moves the file aside and checks it before removing it.
//  3. There are never two Lockkeeper holders. This package changes a lease file only
//     under a kernel lock on a guard file beside it, and the guard records the holder.
//     Whatever foreign tools do to the lease file, the next Lockkeeper holder waits for
//     the recorded one to release it or to expire.
//  4. A well-formed file is broken only after its expiry and the grace period. The wall
//     clock decides when the file is seen first; a Lockkeeper file is seen when it is
//     written. From then on the monotonic clock of the boot decides, which cannot be set
//     and stops while the host sleeps. So a step of the wall clock frees no file that was
//     seen before it. The death or reuse of a PID frees nothing.
//  5. A malformed or empty file is broken only if it was not modified for two seconds,
//     because its creator may not have written it yet. Its bytes are kept beside it. An
//     unreadable file counts as held by an unknown holder. A path that is not a regular
//     file, or holds other text under a name that is not a lock file's, is refused.
//  6. Nothing is broken before an audit line says who breaks it, when, why and what was
//     checked.
//  7. Readers share a lease file as a group: foreign tools see one file with one token
//     that lasts as long as the last reader. The guard records the readers.
//  8. One holder acquires several lease files in one fixed order and releases them in
//     reverse order.
//
// Beside a file x.lock there is .x.lock.guard, and during an operation .x.lock.new or
// .x.lock.old. Breaking a file adds x.lock.audit.jsonl, and x.lock.corrupt.<time> for a
// malformed one.
//
// A Lease is safe for concurrent use. Keep starts one goroutine, which ends before its
// stop function returns. A file system without renameat2 cannot exchange two files and is
// refused.
package lease
