// Package httpstatus says what an error of the program is in HTTP: for the server's
// answers, the dashboard's pages and the desk of agents alike. Package cli has the table
// of exit codes.
//
// Invariants:
//
//  1. Every code of package lockkeeper has a status here, and nothing else gives it one.
//  2. A status of 500 and above means that the fault is not the asker's.
//
// The package starts no goroutines.
package httpstatus
