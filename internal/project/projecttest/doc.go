// Package projecttest has what tests of several packages share: a codebase with its locks
// in an SQLite file, the sample application with scripted agents, and a real server. It
// also has documents that bring a unit of a flow to a decision. Its entry points let the
// test binary act as the programs of the project.
package projecttest
