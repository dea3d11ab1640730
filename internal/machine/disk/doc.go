// Package disk finds the canonical name of a directory, and explains errors of the file
// system.
//
// RealDir resolves links. If a directory is mounted in several places, RealDir returns the
// same name for all of them. So a codebase has one name, by whatever path it is opened.
//
// The package starts no goroutines.
package disk
