// Package shellword writes words for a shell.
//
// Package mvdan.cc/sh/v3/syntax has a Quote too. For a POSIX shell it refuses text that is
// not printable, but file names can be such text, and a git hook must name them.
//
// The package owns no goroutines.
package shellword
