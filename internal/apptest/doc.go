// Package apptest has what tests of the surfaces share: a codebase with its locks in an
// SQLite file, the sample application with scripted agents, and the documents that take a
// unit of a flow to where people decide.
package apptest
