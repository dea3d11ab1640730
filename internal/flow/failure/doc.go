// Package failure compares failures of test commands. From the output of a command it takes the
// names of the tests that failed, in the forms of common test runners. Of an output in another form
// it takes the last lines, without what differs from run to run.
//
// Invariants:
//
//  1. Two runs of the same command that fail for the same reason give equal failures, wherever
//     their workspaces are and however long they take.
//  2. A failure is a part of another one only if everything in it is there. Output without names of
//     tests is never a part of output with names.
//
// Goroutines: none.
package failure
