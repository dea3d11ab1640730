// Package project opens a codebase: it finds the root, reads the configuration, opens the
// store, the lock manager and the gate, and keeps the tokens of this user's grants. Init
// makes a directory a root.
//
// What is done with an open codebase is in the packages that own it: landing, job, git,
// session, flow/conduct. They take a *Project.
//
// What it keeps on disk:
//
//	<root>/lockkeeper.yaml           the configuration
//	<root>/.lockkeeper/space.json    the marker: which space this root is
//	<root>/.lockkeeper/state.db      the locks, unless the store is elsewhere
//	<root>/.lockkeeper/stage, …      what package gate keeps: writes on their way, originals, rescued content
//	<state>/tokens/<space>/<grant>   secret tokens of this user's grants
//	<state>/worlds/<root>.json       the witness: which space this root was
//	<state>/worlds/<root>.alive      everybody who uses it has a shared lock on it
//
// where <state> is the user's own directory, $XDG_STATE_HOME/lockkeeper.
//
// Invariants:
//
//  1. One root has one lock world. The witness survives the removal of
//     .lockkeeper, and while one process of this user still uses the old world,
//     nothing makes a new one.
//  2. A root is made whole or not at all: .lockkeeper appears by one rename,
//     with the marker and the database in it.
//  3. Nobody opens a root whose marker and witness disagree.
//  4. A token is in a file of mode 0600 before whoever asked for the grant is
//     told that they have it, and never leaves that file except to the lock
//     manager. Others may see the grant, never its token, a moment earlier.
//  5. No password is written to a file.
//  6. A space in PostgreSQL is made only for a root that names none. A root whose
//     configuration names another space than its marker is not opened.
//  7. The codebase itself is written through the gate alone, which is opened by the
//     first who needs it; init alone writes the configuration.
//  8. Root opens no database of another user: what it left there would lock the
//     owner out.
//
// The package starts no goroutines of its own; those of the manager and the
// store end with Close.
package project
