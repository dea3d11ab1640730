// Package job runs the queued work of a project: it opens the queue as configured, runs the
// commands of items, and keeps their output.
//
//	Queue   the items: find, list, count, follow
//	Runner  runs the command of an item under the item's grant
//	Output  what an attempt printed, kept in .lockkeeper/output for gate.keep
//
// Invariants:
//
//  1. Run returns when nothing of the command is left: as long as a process of it runs, the
//     item keeps its locks.
//  2. The output of each attempt is a separate file, bounded in size: its end is kept.
//  3. Output that cannot be kept does not fail the item. The runner reports it.
//
// Goroutines: one copies the output of each running command. It ends when Run returns.
package job
