// Package resource gives names to what people and jobs lock: a chapter, a style
// guide, a map of a project; and says which of them an operation or a prompt needs.
//
// The tables are those of lockkeeper.yaml, under resources and operations. There is
// no other: what lockkeeper init book and lockkeeper init fole know stands in the
// file they write, where it can be read and changed.
//
// Invariants:
//
//  1. A name stands for one resource. A table in which it could stand for two is
//     refused, with the place of the second in the file.
//  2. Nothing is guessed: an operation that is not in the table, or of which
//     something is unclear, is an *UnclearError that names what, and no lock.
//  3. Locks and names come in the global order of lockkeeper.Target.Compare.
//
// The package is rules alone: it reads no files and keeps no state.
package resource
