// Package jsonplace finds the line and column of a value in a JSON text, for error
// messages.
//
// Invariants:
//
//  1. It validates nothing. In invalid JSON it returns the position where it could no
//     longer follow the text, or the beginning.
//  2. Lines and columns count from 1; columns count bytes.
//
// The package has no goroutines.
package jsonplace
