// Package command has what all commands share: the global flags, the open project, the
// caller, exit codes, signals, and the printing of answers and errors.
//
// Invariants:
//
//  1. An error becomes an exit code in one table (exit.go) and text or JSON in one
//     place (errors.go).
//  2. Releasing another holder's lock needs a typed answer on a terminal.
//  3. After a signal the program cleans up, and then ends by that signal.
package command
