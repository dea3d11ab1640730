// Package gate writes into the shared tree, and is the only package that does. It holds
// the first promise: no write lands without a live grant that covers it, even if its
// writer is late, paused, killed or wrong.
//
// One commit is one landing. It owns a directory of its own, the stage, through which
// all its changes go:
//
//	check ─▶ stage ─▶ decide ─▶ apply ─▶ sync ─▶ committed
//	  │        │        │         └─ the tree was edited meanwhile ─▶ rolled back
//	  └────────┴────────┴─▶ refused: the tree is unchanged
//
// Files:
//
//	commit, change, check   the requested changes; the three checks of paths and grant
//	stage                   the stage, into which new content is read
//	replace, draft          a directory replaced as a whole; its draft in the tree
//	decide                  every transaction on the table of landings
//	apply, rollback, away   renames into the tree and back; directories that moved
//	recover, takeover       landings that a crashed process left
//	undo, restore           undoing a landing, of files or of a directory; the originals that it needs
//	original                the content of an earlier version
//	refused                 keeps content that did not land on the rescue shelf
//	observe                 the content of a path, as a version
//
// Invariants:
//
//  1. Three checks are made in this order: the path is in the allowlist and not
//     protected; the grant is live and the caller's; the grant holds exactly this path
//     for writing. They are made before anything is staged, and the last two again in
//     the transaction that decides.
//  2. Deciding is one durable transaction, the commit point. A decided landing is
//     completed by its writer or by any recovery, or rolled back as a whole because the
//     tree was edited meanwhile.
//  3. Every change of the tree is a rename with one end in the landing's own stage: out
//     of it (create), into it (delete), or an exchange with it (replace, mode). A process
//     that empties and removes the stage has fenced the writer, whose next rename finds
//     nothing. The name of a stage, and of everything in it, is never used again. Nothing
//     in the tree is unlinked or chmoded, and only empty directories are removed. A
//     directory that is replaced as a whole is prepared in the tree, in target/tmp.
//  4. A displaced file must be the version that the landing expected. If it is a different
//     one, the gate returns it, so no edit is overwritten. If it cannot return it because
//     the path was written again, it keeps the file on the rescue shelf.
//  5. The stage of a decided landing shows which changes were made: a replaced file is in
//     it as its old version, a created one is gone from it, a deleted one is in it. So a
//     landing can be completed after a crash at any point, by content alone.
//  6. Recovery takes over a stage by moving its content into a new directory. That fences
//     the writer and every earlier recovery. The directory exists before the store names
//     the new taker, and only the last taker can end the landing, so it has fenced all
//     others by then. Rolling back follows a directory that was moved: its writer holds
//     it open, and a recovery finds it in the tree by its inode. While the directory is
//     not in the tree, the landing stays decided.
//  7. Files are synced before the landing is decided, and directories before it is marked
//     as committed. A failed sync is never tried again on the same descriptor.
//  8. New content lands, or is on the rescue shelf, or is in the stage of a landing that
//     recovery will end. If the shelf fails, a *NotKeptError says so. A refused write is
//     also recorded as a gap.
//
// A Gate may be used by many goroutines. It starts none that outlives a call.
package gate
