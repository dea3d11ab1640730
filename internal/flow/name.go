package flow

import (
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// IsPattern reports whether a text is a pattern for names rather than a name.
func IsPattern(text string) bool { return strings.ContainsAny(text, "*?[{") }

// MatchName reports whether a pattern matches a name, such as that of a unit or a file: * matches within
// a part of the name, ** also across parts. A name matches itself.
func MatchName(pattern, name string) bool {
	return pattern == name || doublestar.MatchUnvalidated(pattern, name)
}
