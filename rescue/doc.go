// Package rescue keeps content that could not land, for a person to inspect: the content of
// refused writes, and edits that a landing displaced.
//
// An entry is a directory named by its id. The file meta.json describes the entry, and the
// file content, if there is one, has the content. The file base, if there is one, has the content
// that the change was based on; entries of earlier versions have none. The path that the content was meant for is
// only text in meta.json, never part of a file name. Anything that is not a regular file is
// not copied. The caller moves it elsewhere, and the content is a note that says where.
//
// Invariants:
//
//  1. An entry exists completely or not at all. It is written and fsynced under a temporary
//     name and renamed into place, and renamed back before it is removed. A crash leaves at
//     most a directory whose name begins with durable.TempPrefix, which is never read and
//     which Prune removes.
//  2. If Put returned no error, the entry survives a crash.
//  3. An entry is never replaced, and its content never changes.
//  4. No link is followed, and nothing outside the shelf is read, written or removed.
//  5. An id is validated before it becomes a file name.
//  6. An entry that was altered is shown as Damaged and hides no other. Its remains can be
//     read and dropped.
//  7. The contents together take no more space than Limits allow, and a large one no more
//     than half of the free space on the disk. Notes, which are small, and PutUnlimited are
//     exempt.
//
// Only the owner can read a shelf. The package has no goroutines. A Shelf has no state and
// may be used by several goroutines and processes at once.
package rescue
