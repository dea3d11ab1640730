// Package deferred queues patches for files that another holder has locked. Each lands through the
// gate when its file is free.
//
//	Put ──▶ queued ──Land──▶ landed, through the gate
//	                  └────▶ rescued: its base no longer matches, or the gate refuses it
//
// A patch is a unified diff of one file, or the file's whole new content. A diff matches if
// every hunk finds its lines in exactly one place. Line numbers count only while the file
// still has the content the author saw. A whole content matches if the file still has the
// content that its author saw.
//
// Invariants:
//
//  1. A patch is on disk before the caller is told that it is queued. It stays until it has
//     landed, or is on the rescue shelf together with the result it would have had.
//  2. A patch lands under a grant of its own. Land tries to acquire it and never waits, so
//     a patch delays no other request. No daemon is needed: the next command that runs
//     lands what is free.
//  3. One process lands patches at a time. If it dies, the patch stays queued. A patch that
//     is found to have landed is not landed again.
//  4. Patches of one file land in the order they were queued. A patch that fails or cannot
//     be read does not stop patches of other files.
//
// The package starts no goroutines.
package deferred
