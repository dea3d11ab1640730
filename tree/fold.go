package tree

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// A nameError refuses a single name.
type nameError struct{ reason, next string }

func (e *nameError) Error() string { return e.reason }

// isPlain reports whether a name is its own folded form on every disk, so that the
// disk need not be checked.
func isPlain(name string) bool {
	for i := range len(name) {
		if c := name[i]; c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' || c == '~' {
			return false
		}
	}
	return !strings.HasSuffix(name, ".") && !strings.HasSuffix(name, " ")
}

// foldName returns the canonical spelling of a name on a disk that folds case. It
// refuses names that such disks may equate with others in unknown ways.
func foldName(name string) (string, error) {
	switch {
	case strings.HasSuffix(name, "."), strings.HasSuffix(name, " "):
		return "", &nameError{"a name that ends in a dot or space, which this disk may drop", "rename the file"}
	case hasShortForm(name):
		return "", &nameError{"~ and a digit in a name may be the short form of a longer name on this disk", "use the long name"}
	case strings.ContainsFunc(name, isInvisible):
		return "", &nameError{"an invisible character in a name, which this disk may ignore", "rename the file"}
	}
	// Canonical caseless matching (Unicode 3.13): folding is defined on the
	// decomposed form.
	return norm.NFC.String(cases.Fold().String(strings.Map(upperCherokee, norm.NFD.String(name)))), nil
}

// upperCherokee maps Cherokee letters to upper case, because cases.Fold swaps the cases
// of this script instead of unifying them.
func upperCherokee(r rune) rune {
	if unicode.Is(unicode.Cherokee, r) {
		return unicode.ToUpper(r)
	}
	return r
}

// hasShortForm reports whether a name looks like PROGRA~1.
func hasShortForm(name string) bool {
	for i := range len(name) - 1 {
		if name[i] == '~' && '0' <= name[i+1] && name[i+1] <= '9' {
			return true
		}
	}
	return false
}

// isInvisible reports whether a code point may be ignorable by default.
func isInvisible(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// swapCase changes the case of a name's first ASCII letter.
func swapCase(name string) (string, bool) {
	for i := range len(name) {
		if c := name[i] | 0x20; 'a' <= c && c <= 'z' {
			return name[:i] + string(name[i]^0x20) + name[i+1:], true
		}
	}
	return "", false
}
