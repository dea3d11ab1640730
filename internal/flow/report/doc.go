// Package report sums up a flow of a project: what was decided, what changed, what it cost,
// what failed, and where the time went.
//
// It reads the documents of the flow, the records of its calls, and the queue. It changes
// nothing and starts no goroutines.
package report
