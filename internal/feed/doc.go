// Package feed fans the event log of a space out to any number of watchers, by
// number: each gets every event after the one it has seen, in order, once.
//
// Invariants:
//
//  1. A watcher misses nothing that the log keeps. Where the log has forgotten what it
//     wants next, it sees a gap in the numbers.
//  2. A slow watcher keeps nobody waiting: it reads on from the log when what it wants
//     has left the memory of the feed.
//  3. The log is read once for all who keep up.
//
// Goroutines: a Feed owns one, which follows the log; Close stops it and waits.
package feed
