// Package project opens a codebase: it finds the root, reads the configuration, opens the
// store, the lock manager and the gate, and stores the tokens of this user's grants. Init makes
// a directory a root.
//
// The packages landing, job, git, session and flow/conduct work on an open codebase. They take
// a *Project.
//
// Files:
//
//	<root>/lockkeeper.yaml           the configuration
//	<root>/.lockkeeper/space.json    the marker: which space this root is
//	<root>/.lockkeeper/state.db      the locks, unless the store is elsewhere
//	<root>/.lockkeeper/stage, …      files of package gate: landings in progress, originals, rescued content
//	<state>/tokens/<space>/<grant>   secret tokens of this user's grants
//	<state>/worlds/<root>.json       the witness: which space this root was
//	<state>/worlds/<root>.alive      each process that uses the root holds a shared lock on it
//
// where <state> is the user's own directory, $XDG_STATE_HOME/lockkeeper.
//
// Invariants:
//
//  1. A root has one set of locks, its lock world. The witness survives the removal of
//     .lockkeeper. While a process of this user uses the old world, no new one is made.
//  2. A root is made atomically: .lockkeeper appears by one rename, with the marker and
//     the database in it.
//  3. A root whose marker and witness disagree is not opened.
//  4. A token is in a file of mode 0600 before the caller learns that the grant was
//     acquired, and only the lock manager reads it. Others may see the grant, never its
//     token, a moment earlier.
//  5. No password is written to a file.
//  6. A space in PostgreSQL is made only for a root that names none. A root whose
//     configuration names another space than its marker is not opened.
//  7. Only the gate writes into the codebase. It is opened when it is first needed. Only
//     init writes the configuration.
//  8. The user root opens no database of another user, because the files it creates
//     there would lock the owner out.
//
// The package starts no goroutines of its own; those of the manager and the
// store end with Close.
package project
