// Package httpstatus maps errors of the program to HTTP status codes, for the API, the
// dashboard and the socket of confined agents. Package cli has the table of exit codes.
//
// Invariants:
//
//  1. Every code of package lockkeeper has a status here, and no other package defines one.
//  2. A status of 500 or above means that the fault is not the caller's.
//
// The package has no goroutines.
package httpstatus
