// Package tidy moves misplaced files of a codebase to where they belong. It works in
// four phases: documents and leftovers in the root (root routing), outdated files in the
// documentation (docs hygiene), unsorted files in the archive (archive consolidation), and
// old runs (cleanup of .autonomous_runs).
//
//	lease ─▶ for each phase: renew ─▶ plan ─▶ queue ─▶ land ─▶ dequeue ─▶ release
//
// Invariants:
//
//  1. A run, even a dry run, acquires its lease before it reads anything, and releases
//     it however the run ends. A caller can ask to run without a lease. A dry run that
//     only reads uses a shared lease of its own, so it can run beside a real one.
//  2. A dry run changes nothing. A real run enqueues each move before it makes it, and
//     dequeues it after it landed. A move that fails stays in the queue with the reason,
//     for the next run.
//  3. The queue has its own lease, held only while the queue file is read and replaced
//     as a whole. So concurrent runs never lose each other's entries, and a reader never
//     sees a partial file.
//  4. Files are moved only through the caller's gate, one landing per phase, and never
//     over an existing file. A failed renewal of the lease is reported, and the run
//     continues. When the lease is lost, nothing more is moved.
//  5. A run of all phases holds the lease exclusively. Runs of single phases share it,
//     and each also holds a lease on the phase it works on.
//
// The package starts no goroutines.
package tidy
