// Package durabletest makes file operations fail in tests of code that writes through
// package durable. It can also run a test without root privileges, so that permissions
// make operations fail.
//
// Invariants:
//
//  1. A failed operation does not touch the disk, except that a failed write
//     leaves half of its data, as a full disk does, and a failed close still
//     releases the descriptor.
//  2. After a crash nothing touches the disk: it stays as a process killed at that
//     operation would leave it.
//  3. Every attempt is in the trace, failed or not, and its number is its index
//     there.
//
// The package has no goroutines; a FaultPlan is safe for concurrent use.
package durabletest
