// Package jsonplace finds places in JSON texts, for messages that name line and column.
//
// Invariants:
//
//  1. It judges nothing: in a text that is no JSON a place is where it can no longer be
//     followed, or the beginning.
//  2. Lines and columns count from 1, columns in bytes.
//
// The package owns no goroutines.
package jsonplace
