// Package durabletest makes file operations fail on purpose, for tests of
// whatever writes through package durable; and runs a test without root's rights,
// where permissions make them fail.
//
// Invariants:
//
//  1. A failed operation does not touch the disk, except that a failed write
//     leaves half of its data, as a full disk does, and a failed close still
//     gives the descriptor back.
//  2. After a crash nothing touches the disk any more: it stays as a process
//     killed at that operation would leave it.
//  3. Every attempt is in the trace, failed or not, and its number is its place
//     there.
//
// The package has no goroutines; a Plan may be used by several at once. FaultyDisk
// needs durable.OSDisk and so builds on Linux only.
package durabletest
