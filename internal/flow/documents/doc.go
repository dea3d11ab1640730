// Package documents stores what a flow writes: documents, research texts, contents of files,
// and decisions that outlive a run.
//
//	<dir>/                       run.sidecar_dir, by default .pipeline
//	  .lock                      every writer holds a flock on it
//	  <unit>/                    a controller such as blog/posts, or "+" and the unit or folder of
//	                             another flow
//	    analysis.json …          documents, one for each phase
//	    research/<topic>.md      texts
//	    files/<sha256>           contents
//	    batches/<id>/            documents of a batch
//	  decisions/
//	    deferred.json, rejected.json, and the previous version of each: deferred.previous.json …
//
// Invariants:
//
//  1. Two names never share a folder, on any file system, and the folder of a unit is none
//     that another unit has for its own documents. The path of a folder can be turned back
//     into the name of its unit. It is as readable as that permits (FolderName). A name that
//     is too long for a folder is refused. Earlier versions stored a unit in one folder, such
//     as blog%2Fposts. Such folders are read and written where they are until Move moves them.
//  2. A file is replaced as a whole and durably (package durable), and so are the
//     directories above it. A reader sees the old or the new file. A write that returned
//     nil survives a crash. Each process syncs a directory's name once, and again if the
//     directory or one above it was replaced.
//  3. A truncated, damaged or altered file is a *MalformedError, never content and never
//     "missing". A document has its hash in the member "lockkeeper", over its compact JSON
//     without that member. A text has it in a leading comment, over comment and text. A
//     content is named by its hash. A file without a hash, written by a person or another
//     tool, is accepted if the caller's check accepts it.
//  4. Every change is made under an exclusive lock on .lock, across goroutines and
//     processes. The kernel releases it when the holder dies. So Replace and Remove change
//     exactly what the caller read, and no recorded decision is lost.
//  5. Readers of documents, texts and contents take no lock and never wait. PastDecisions
//     takes it, since it reads two files as one.
//  6. A malformed file is never removed or overwritten, except by Write, WriteText and
//     Keep, whose callers replace the whole file. SetAside renames it.
//  7. deferred.json and rejected.json are never recreated. If one is malformed, or missing
//     while its previous version exists, PastDecisions and Record fail until a person
//     repairs it. A malformed one is copied at once.
//  8. An item has one entry. When it moves between the two files it is in both for a
//     moment, and is never missing. The newer entry counts.
//  9. No symbolic link below the directory is followed. The directory itself may be one.
//
// Limits: the hashes detect damage and mistakes, not forgery. About (author, time and cost
// of a document) is not covered by the hash. A killed process can leave a temporary file
// (durable.TempPrefix) that is never read. The package knows neither flows nor schemas. It
// expects a local disk.
//
// Goroutines: a lock request in the kernel cannot be canceled. If the caller's context ends
// first, one goroutine stays until it gets the lock, releases it and ends. A Store has at
// most one such goroutine.
package documents
