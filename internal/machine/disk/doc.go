// Package disk gives directories one name and says why the disk refused something.
//
// RealDir resolves links, and chooses one name for a directory that is mounted in several
// places, so that a codebase has one name whichever way leads to it.
//
// The package starts no goroutines.
package disk
