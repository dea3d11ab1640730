// Package filelock takes locks of the kernel on open files (flock), alone or shared with
// others.
//
// Invariants:
//
//  1. A lock ends with the process that has it, at the latest.
//  2. A signal does not end a wait.
//
// A wait in the kernel cannot be called off: the goroutine of one that Await was called off
// from lives until it is over.
package filelock
