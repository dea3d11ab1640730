// Package sidecar keeps what the phases of a flow leave: documents, research texts,
// originals of files, and decisions that outlive runs.
//
//	<dir>/                       sidecar_dir, .pipeline where nothing else is said
//	  .lock                      whoever changes anything has a flock on it
//	  <unit>/                    a controller, or "+" and another flow's unit
//	    analysis.json …          documents, one for each phase
//	    research/<topic>.md      texts
//	    files/<sha256>           contents
//	    batches/<id>/            documents of a batch
//	  decisions/
//	    deferred.json, rejected.json, and of each the state before: deferred.previous.json …
//
// Invariants:
//
//  1. Two names never share a folder, on no disk, and a folder's name tells the unit's
//     (FolderName, UnitName). A name too long for a folder is refused.
//  2. A file is replaced as a whole and durably (package durable), and so is every
//     directory above it: a reader finds the old or the new, a crash leaves one of them.
//     A write that returned nil survives. The name of a directory is synced once by every
//     process that writes below it, and again when another directory has taken its place or
//     one above it.
//  3. What is cut off, damaged or changed without its hash is a *MalformedError, never
//     content and never "missing". A document carries its hash in its member "lockkeeper",
//     over its compact JSON without that member; a text in a comment in front, over comment
//     and text; a kept content is its hash. Files without a hash, which a person or
//     another tool wrote, are accepted; only the caller's check stands for those.
//  4. Whatever changes files does so under an exclusive lock on .lock, of all goroutines
//     and processes, that the kernel gives back when its holder dies. So Replace and
//     Remove change exactly what the caller has read, and no recorded decision is lost.
//  5. Readers of documents, texts and contents take no lock and never wait. Prior takes
//     it, since two files are one answer.
//  6. Nothing malformed is removed or overwritten, except by Write, WriteText and Keep,
//     whose callers make the file anew. SetAside gives it another name.
//  7. deferred.json and rejected.json are never started afresh: malformed, or gone while
//     the state before it is there, they stop Prior and Record until a person repairs
//     them. A malformed one is copied aside at once.
//  8. An item has one entry. One that moves from a file to the other is in both for a
//     moment, never in none; whoever meets it in both takes the newer.
//  9. No link below the sidecar directory is followed. The directory itself may be
//     reached through one.
//
// What it does not do: the hashes find damage and carelessness; they do not stop whoever
// wants to forge a document. About, which says who wrote a document and what it cost, is
// not covered by the hash. A process that is killed can leave a temporary file
// (durable.TempPrefix), which nobody reads. It knows neither flows nor schemas.
//
// The package needs flock and so builds on Unix only, and wants a local disk.
//
// Goroutines: waiting for the lock is one goroutine in the kernel, which cannot be called
// off. When the caller's context ends first, it stays until the lock comes, gives it back
// and ends; a Store has one such at most.
package sidecar
