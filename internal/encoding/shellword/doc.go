// Package shellword quotes words for a POSIX shell.
//
// Quote of package mvdan.cc/sh/v3/syntax is not enough: for a POSIX shell it refuses text
// that is not printable. File names can be such text, and a git hook must name them.
//
// The package owns no goroutines.
package shellword
