// Package failure compares failures of test commands. It finds the names of failed tests in the
// output of common test runners. From any other output it takes the last lines, without the parts
// that differ from run to run.
//
// Invariants:
//
//  1. Two runs of the same command that fail for the same reason give equal failures, wherever
//     their workspaces are and however long they take.
//  2. A failure is in earlier failures only if all of it is. Output without names of tests is never
//     in output with names.
//
// Goroutines: none.
package failure
