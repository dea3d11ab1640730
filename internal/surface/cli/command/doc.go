// Package command is what every command shares: the flags of the program, the open
// project, who calls, exit codes, signals, and how errors are shown.
//
// Invariants:
//
//  1. An error becomes an exit code in one table (exit.go) and text or JSON in one
//     place (errors.go).
//  2. An act that frees another holder's lock needs a typed answer on a terminal.
//  3. A signal that asks the program to end ends it after its clean-up, and the
//     program dies of that signal.
package command
