// Package apptest has what tests of the surfaces share: the programs that the test's own is
// under other names, a codebase with its locks in an SQLite file, the sample application with
// scripted agents, a real server of it, and the documents that take a unit of a flow to where
// people decide.
package apptest
