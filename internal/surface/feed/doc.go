// Package feed distributes the event log of a space to any number of watchers. Each watcher
// gets every event after the last number it has seen, in order, once.
//
// Invariants:
//
//  1. A watcher misses nothing that the log still has. If the log has pruned the events it
//     wants next, the watcher sees a gap in the numbers.
//  2. A slow watcher delays no other: when its next event has left the feed's memory, it
//     reads from the log.
//  3. All watchers that keep up share one read of the log.
//
// Goroutines: a Feed owns one that follows the log. Close stops it and waits.
package feed
