package flow

import (
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"lockkeeper"
	"lockkeeper/internal/project/protect"
)

// readable cleans a path, which must be relative to the root and not outside it. It keeps the
// slash at the end of a directory.
func readable(spelling string) (string, error) {
	refuse := func(reason string) (string, error) {
		return "", &lockkeeper.InputError{Field: "path", Value: spelling, Reason: reason, Next: "use a path relative to the root and inside it"}
	}
	switch {
	case strings.TrimSpace(spelling) == "":
		return refuse("empty")
	case strings.HasPrefix(spelling, "/"):
		return refuse("not relative to the root")
	case slices.Contains(strings.Split(spelling, "/"), ".."):
		return refuse("a path with ..")
	case strings.ContainsFunc(spelling, isControl):
		return refuse("a control character in it")
	}
	clean := path.Clean(spelling)
	if err := (lockkeeper.Target{Kind: lockkeeper.File, Path: clean}).Validate(); clean != "." && err != nil {
		return "", err
	}
	if strings.HasSuffix(spelling, "/") && clean != "." {
		clean += "/"
	}
	return clean, nil
}

// writable does the same as readable for a file to change. It refuses reserved names in the path.
func writable(spelling string) (string, error) {
	clean, err := readable(spelling)
	if err != nil {
		return "", err
	}
	name, reserved := protect.HasReserved(clean)
	switch {
	case clean == "." || strings.HasSuffix(clean, "/") || strings.HasSuffix(spelling, "/."):
		return "", &lockkeeper.OverLockError{Path: spelling, Policy: "agent"}
	case reserved:
		return "", &lockkeeper.InputError{Field: "path", Value: spelling, Reason: name + " is protected", Next: "leave it out"}
	}
	return clean, nil
}

// Targets returns the sorted union of lists of paths, each cleaned. An invalid path stays
// unchanged, and the lock request refuses it.
func Targets(lists ...[]string) []string {
	all := []string{}
	for _, list := range lists {
		for _, spelling := range list {
			if clean, err := readable(spelling); err == nil {
				spelling = clean
			}
			all = append(all, spelling)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// isControl reports whether r is a control character. Invalid UTF-8 counts as one, because it
// would break a line as well.
func isControl(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError }
