// Package cli is the command line: one file per command, each with its options
// and its run. A command decodes what was typed, calls package app, and shows
// the answer; it decides nothing about locks.
//
// Invariants:
//
//  1. A command reads and writes through one IO, so a test can replace it all.
//  2. An error becomes an exit code in one table (exit.go) and text or JSON in
//     one place (report.go). With --json exactly one JSON value goes to standard
//     output, also when the command fails; audit alone writes one to a line.
//  3. Colour and shortened paths are for terminals only.
//  4. Names of files and holders come from others: what could move the cursor is
//     escaped before it is shown to a person.
//  5. An answer that could not be written is a failure, whatever the command did;
//     a grant whose id nobody got is given back.
//  6. A signal that asks the program to end ends it, after its clean-up, so that
//     whoever started it sees that it died of the signal.
//  7. What frees somebody else's lock needs a typed answer on a terminal; of a claim
//     whose holder is gone, the option that says so.
//
// The package starts no goroutines that outlive a command.
package cli
