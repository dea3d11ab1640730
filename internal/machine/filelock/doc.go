// Package filelock acquires kernel locks on open files (flock), exclusive or shared.
//
// Invariants:
//
//  1. A lock ends at the latest when its process ends.
//  2. A signal does not interrupt a wait.
//
// A wait in the kernel cannot be canceled. If the context of Await ends first, the waiting
// goroutine lives on until it gets the lock, and then releases it.
package filelock
