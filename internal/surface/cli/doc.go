// Package cli is the command line: the root command and its help. The commands are in
// sub-packages by what people do (locks, landings, jobs, flows, agents, compat, server,
// inspect, demo), each next to its options and its run. A command
// decodes its arguments, calls the packages below it, and prints the answer. It decides
// nothing about locks.
//
// Invariants:
//
//  1. A command reads and writes through one term.IO, so that a test can replace it.
//  2. With --json, exactly one JSON value goes to standard output, also when the command
//     fails. Only audit and --watch write one value per line.
//  3. Others choose the names of files and holders, so term.Clean escapes them.
//  4. If the answer cannot be written, the command fails. A grant whose id could not be
//     written is released.
//  5. A group imports only groups below it; imports_test.go has the order.
//
// No goroutine outlives its command.
//
// A new command is one constructor in its group and one word in the function Commands of
// the group, or in the parent command. A top-level command also has its name in help.go.
package cli
