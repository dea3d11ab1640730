// Package parcel sends trees and files between clones of a repository, through a remote that all of
// them reach. It needs no server of its own.
//
// A parcel is a commit on a ref below refs/lockkeeper, which no clone fetches by itself:
//
//	base      the files of the root as git sees them: filters of the repository apply
//	tree      the same with edits, byte for byte as they were in a workspace
//	<others>  files, such as a prompt or an output
//
// Its parent is HEAD of the sender, so that agents find the history, and so that git sends only what
// the receiver lacks.
//
// A Keeper makes commits of other directories, such as the documents of a run, byte for byte, and
// Extract writes their files.
//
// Invariants:
//
//  1. The sender's index, HEAD and work tree do not change. Objects are added to its repository.
//  2. A parcel is read only from its commit. Nothing of it is checked out by Edits and File, so
//     hostile names and links have no effect. Checkout lets git check the names.
//  3. Hooks do not run, and no program of the configuration except filters.
package parcel
