// Package landing lands changes for the surfaces: single changes, the files of a directory
// (Mirror), or an entry of the rescue shelf.
//
// Invariants:
//
//  1. Everything goes through the gate of the project, under a grant of the caller.
//  2. Changes land as one unit. What the gate refuses is left out and kept by the gate,
//     unless the caller wants all changes or none.
//  3. Each wanted change has one Outcome: it landed, it was there already, or it was
//     refused, and why.
//  4. An entry leaves the rescue shelf only after its content landed.
//
// The package starts no goroutines. A Mirror holds directories open until Close.
package landing
