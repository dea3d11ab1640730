// Package largerun makes the state of a large run for tests: a codebase with the documents, the
// queue, the landings, the rescued changes and the records of calls of hundreds of units.
//
// No agent runs. The scheduler, the lock engine, the gate and the documents are the real ones, and
// their clock passes the hours of the run in seconds. The seed determines everything but ids.
package largerun
