// Package deferred is the patches of those who were refused a file: they wait until it is
// free, and then land through the gate.
//
//	Put ──▶ queued ──Land──▶ landed, through the gate
//	                  └────▶ rescued: its base does not match any more, or the gate refuses it
//
// A patch is a unified diff of one file, or the whole of its new content. The base of a diff
// matches when every hunk finds its lines in exactly one place; where a hunk says it belongs
// counts only while the file holds what the author knew. The base of a whole content is what
// its author has seen, never what happens to be there, and matches when the file holds that.
//
// Invariants:
//
//  1. A patch is on disk before whoever deferred it is told so, and stays until it has
//     landed or is on the rescue shelf, with what it would have made of its base.
//  2. It lands under a grant of its own, taken by try: it waits in no line and keeps nobody
//     waiting. So nobody has to run for it; whoever calls next lands what is free.
//  3. One process lands at a time. One that dies in the middle leaves the patch queued; what
//     is found to have landed is not landed again.
//  4. Patches of one file land in the order in which they came. One that fails, or cannot be
//     read, stops none of another file.
//
// The package starts no goroutines.
package deferred
