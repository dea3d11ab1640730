// Package author lets people and agent instances claim parts of a book: chapters and other
// resources by name, or files by path.
//
//	claim ──▶ Author ──▶ lock engine: one grant per claim, with policy author or person
//	             │  ▲
//	             ▼  │ Merge
//	      .locks/locks.json ◀──▶ tools that know only that file
//
// The store holds the claims, and the file mirrors them. An entry that another tool writes
// into the file becomes a grant of policy author; when the entry is removed, the grant is
// released. Entries of Lockkeeper's own claims are restored if another tool removes them.
//
// Invariants:
//
//  1. A claim acquires all of its resources or none, as one grant. Its display names are in
//     the grant's metadata.
//  2. A person overrides claims only after every conflicting claim was checked, and an
//     agent never does. Uncommitted content is copied to the rescue shelf first.
//  3. A claim is made and written to the file in one critical section, under the guard of
//     package bookfile. If the file cannot be written, the claim is released.
//  4. A foreign entry that conflicts with a grant gets none. It is a Collision: recorded as
//     an event the first time, and reported to watchers. The holder keeps its grant.
//  5. A release needs the grant and its token. If a claim was overridden, its late release
//     changes nothing.
//  6. A claim is cleaned up without a person only if its holder is gone: its process has
//     ended, or nothing is known about it and it showed no activity for an hour.
//
// Goroutines: a Watch owns one, which has ended when Close returns. Nothing else starts any.
package author
