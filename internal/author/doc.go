// Package author is how people and agent instances claim parts of a book: chapters
// and other resources by their names, or files by their paths.
//
//	claim ──▶ Author ──▶ lock engine: one grant for each claim, policy author or person
//	             │  ▲
//	             ▼  │ Merge
//	      .locks/locks.json ◀──▶ tools that know nothing but that file
//
// The store is the truth, and the file is a mirror of it. What a foreign tool writes
// there is taken up as a grant of policy author and counts from then on like any
// other; when its entry goes, so does the grant. What is ours stands there as the
// store has it, whoever took it out.
//
// Invariants:
//
//  1. A claim is all of its resources or none, and one grant. What it is called in the
//     file and in dialogs is in the grant's metadata.
//  2. Nobody is overridden before everything that is in the way may be, and never by an
//     agent. What was written and not committed is copied to the rescue shelf first.
//  3. The file is looked at and written in the same turn in which a claim is made, under
//     the guard of package bookfile. A claim that cannot be shown there is given back.
//  4. A foreign entry that meets a grant gets none: it is a Collision, an event in the
//     record the first time, and told to whoever watches. The holder stays the holder.
//  5. A release is by grant and token. The late release of somebody who was overridden
//     changes nothing.
//  6. Only who is Gone is cleaned up without a person: whose process has ended, or of
//     whom there was no sign for an hour and nothing is known.
//
// Goroutines: none but that of a Watch, which has ended when Close returns.
package author
