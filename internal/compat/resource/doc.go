// Package resource maps names to locks: a chapter, a style guide, the map of a project. It
// also says which locks an operation or a prompt needs.
//
// The tables are in lockkeeper.yaml, under resources and operations. There are no built-in
// tables: `lockkeeper init book` and `lockkeeper init fole` write theirs into that file,
// where people can read and change them.
//
// Invariants:
//
//  1. A name stands for one resource. A table with an ambiguous name is refused, with the
//     position of the second use in the file.
//  2. Nothing is guessed. An operation that is missing or ambiguous is an *UnclearError
//     that names the problem, and no lock is acquired.
//  3. Locks and names are returned in the global order of lockkeeper.Target.Compare.
//
// The package is pure: it reads no files, keeps no state and starts no goroutines.
package resource
