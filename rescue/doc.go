// Package rescue keeps what could not land, for a person to look at: content of
// refused writes and edits that a landing met in its place.
//
// An entry is a directory named by its id, with what is known of it in meta.json
// and, unless there is none, the content beside it in the file content. The path
// that it was to go to is text in meta.json and never part of a file name. What is
// no file is not copied: whoever keeps it moves it aside, and the content is a note
// that says where.
//
// Invariants:
//
//  1. An entry is there whole or not at all: it is written and fsynced under a
//     temporary name and moved into place, and moved back under such a name
//     before it is removed. A crash leaves at most a directory whose name begins
//     with durable.TempPrefix, which nobody reads and Prune clears.
//  2. What Put returned without an error survives a crash.
//  3. An entry is never replaced, and its content is never changed.
//  4. No link is followed, neither the shelf itself nor anything on it, and
//     nothing outside of the shelf is read, written or removed.
//  5. An id is checked against its form before it becomes a file name.
//  6. An entry that is not as Put left it is shown as Damaged and hides no
//     other; what is left of it can still be read and dropped.
//
// Only the owner can read a shelf. The package has no goroutines; a Shelf keeps
// no state and may be used by several goroutines and processes at once. It needs
// durable.OSDisk and so builds on Linux only.
package rescue
