// Package tidy moves files that lie about in a codebase to where they belong, in three
// phases: documents and left-overs in the root (root routing), what is outdated in the
// documentation (docs hygiene), and what was put into the archive as it came (archive
// consolidation).
//
//	lease ─▶ for each phase: renew ─▶ plan ─▶ queue ─▶ land ─▶ off the queue ─▶ release
//
// Invariants:
//
//  1. Nothing is looked at before the lease is held, in a dry run neither, and it is
//     given back however the run ends. Only a caller who says so runs without one, and a
//     dry run that only reads has a lease of its own kind, beside whoever moves.
//  2. A dry run changes nothing. Otherwise what a phase will move is in the queue before
//     it is moved, and comes off it when it has landed; what cannot be moved stays there,
//     with the reason, for the next run.
//  3. The queue is changed under a lease of its own, which is held for nothing else, and
//     replaced as a whole. So two runs at once, with a lease or without, lose none of each
//     other's entries, and whoever reads it reads a whole one.
//  4. Files are moved by the caller's gate alone, a phase as one unit, never over another
//     file. That the lease could not be renewed is told and does not end the run; once it
//     is lost nothing is moved any more.
//  5. A run of all phases has the lease for itself. One of single phases shares it with
//     others of its kind, and has a lease on each of its phases, one at a time.
//
// The package starts no goroutines.
package tidy
