// Package gate is the one door through which a change reaches the shared tree.
// It holds the first promise: no write lands without a live grant that covers
// it, whoever is late, paused, killed or wrong.
//
//	check ─▶ stage ─▶ decide ─▶ carry out ─▶ sync ─▶ committed
//	  │        │        │           └─ somebody's edit in the way ─▶ undone
//	  └────────┴────────┴─▶ refused: the tree is as it was
//
// Invariants:
//
//  1. Three checks, in this order: the path lies in the allowlist and is not
//     protected; the grant is live and the caller's; the grant holds exactly this
//     path for writing. They are made before anything is staged and, the last
//     two, again in the transaction that decides.
//  2. Deciding is one durable transaction: the commit point. From there on a
//     landing is done to its end by whoever comes by, or is taken back as a whole
//     because an edit of somebody else is in its way.
//  3. Every change of the tree is a rename with one end in the landing's own
//     stage: out of it (create), into it (delete), or an exchange with it (replace,
//     mode). Whoever has emptied and removed the stage has fenced its writer: its
//     next rename finds nothing. A stage has its name once and never again, and so
//     has all that is in it; nothing in the tree is unlinked or chmoded, and only
//     empty directories are removed. A directory that is replaced as a whole is
//     drafted in the tree, in target/tmp.
//  4. A displaced file must be what the landing took for granted. If it is not, it
//     is put back: nobody's edit is overwritten. What cannot be put back, because
//     there is yet another one, is kept on the rescue shelf.
//  5. Of a decided landing the stage says what is done: a replaced file is there as
//     its old self, a created one is gone from it, a deleted one is in it. So it can
//     be finished after a crash at any point, by content alone.
//  6. Recovery takes over a stage by moving what is in it into a new directory of
//     its own, which fences the writer and every earlier recovery alike. That
//     directory is there before the store says who has the landing, and only who
//     has it can end it: so the last taker has fenced all others when it ends it.
//     Rolling back follows a directory that was moved: its writer holds it open, and a
//     recovery finds it in the tree by its inode. While it is not in the tree the
//     landing stays decided.
//  7. Files are synced before the landing is decided; the directories before it is
//     called committed. A failed sync is never tried again on the same descriptor.
//  8. New content lands, or is on the rescue shelf, or is in the stage of a landing
//     that recovery will end. If the shelf fails, a *NotKeptError says so. A refused
//     write is also recorded as a gap.
//
// A Gate may be used by many goroutines. It starts none that outlives a call.
package gate
