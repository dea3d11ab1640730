// Package cli is the command line: the root command and its help. The commands are in
// sub-packages by what people do (locks, landings, jobs, flows, agents, compat, server,
// inspect, demo), one file per command, each with its options and its run. A command
// decodes its arguments, calls package project, and shows the answer. It decides nothing
// about locks.
//
// Invariants:
//
//  1. A command reads and writes through one term.IO, so that a test can replace it.
//  2. With --json, exactly one JSON value goes to standard output, also when the command
//     fails. Only audit and --watch write one value per line.
//  3. Names of files and holders come from others: term.Clean escapes them.
//  4. An answer that could not be written is a failure, whatever the command did. A grant
//     whose id was not written is released.
//  5. A group imports only groups below it; imports_test.go has the order.
//
// No goroutine outlives its command.
package cli
