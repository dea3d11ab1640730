// Package snapshot copies files before a command runs that may remove or overwrite them, if
// nothing else could bring them back.
//
//	Take ──▶ the command runs ──▶ Changed ──▶ Content of what is gone ──▶ Close
//
// A Store is a directory on the disk of the tree. It holds one manifest for each open
// snapshot, and the copies that the manifests refer to. A copy is named after the state of
// the file that it was made from: device, inode, size and times. So a file that has not
// changed since the last snapshot costs one stat call and is not read again. Sessions that
// work at the same time share the copies.
//
// Invariants:
//
//  1. A copy is a file of its own, a reflink where the disk can make one. It is never a hard
//     link: a command that truncates the original in place would change the copy, too, and
//     the additional name would change the original's ctime and link count.
//  2. A copy has the content of one moment: the state of the file was the same before and
//     after copying. A file that is being written, or that was changed within the current
//     tick of the clock, is copied for this snapshot alone, and compared by its content.
//  3. A manifest is written after its copies, and removed before them. A process that dies
//     leaves an open snapshot, which List shows, or copies that the next sweep removes.
//  4. Copies are removed only under the exclusive lock of the store; Take has the shared one.
//  5. Only the owner can read a store.
//
// Nothing is synced: a snapshot outlives every process, but not a power failure. The package
// starts no goroutines and needs Linux.
package snapshot
