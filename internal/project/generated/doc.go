// Package generated knows directories that tools fill, by their names: caches, dependencies and
// the output of builds. The names alone decide; nothing is read from the disk.
package generated
