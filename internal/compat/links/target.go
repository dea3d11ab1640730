package links

import (
	"net/url"
	"path"
	"strings"
)

// A target is the parsed target of a reference.
type target struct {
	url      string // empty if in the repository
	path     string // decoded, with slashes; empty for the document itself
	literal  string // the same, not decoded
	fragment string // decoded
	rest     string // query and fragment as written
	foreign  bool   // another scheme, such as mailto
	machine  bool   // an absolute path of one machine
}

// targetOf parses a target as a browser does: a URL, or a path with query and fragment.
func targetOf(r Reference) target {
	written := r.Target
	if r.Kind == Link || r.Kind == Image || r.Kind == Definition || r.Kind == Mention {
		switch scheme := schemeOf(written); {
		case scheme == "http" || scheme == "https":
			return target{url: written}
		case strings.HasPrefix(written, "//"):
			return target{url: "https:" + written}
		case scheme == "file" || len(scheme) == 1:
			return target{machine: true, path: written}
		case scheme != "":
			return target{foreign: true}
		}
	}
	t := target{literal: written}
	if cut := strings.IndexAny(written, "?#"); cut >= 0 {
		t.literal, t.rest = written[:cut], written[cut:]
	}
	if _, fragment, ok := strings.Cut(t.rest, "#"); ok {
		t.fragment = decoded(fragment)
	}
	t.path = t.literal
	if r.Kind != Code && r.Kind != Mention {
		t.path = decoded(t.literal)
	}
	return t
}

// schemeOf returns the lower-case scheme of a URL. A single letter is a drive, and a
// prefix with a dot is a file name.
func schemeOf(written string) string {
	for i := range len(written) {
		c := written[i]
		switch {
		case c == ':' && i > 0:
			return strings.ToLower(written[:i])
		case !isLetter(c) && (i == 0 || !('0' <= c && c <= '9' || c == '+' || c == '-')):
			return ""
		}
	}
	return ""
}

// decoded resolves percent encoding and leaves invalid codes as they are.
func decoded(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}

// joined resolves a path relative to a document. It returns false if the path leaves the
// root. A leading slash means the root.
func joined(document, written string) (string, bool) {
	if strings.HasPrefix(written, "/") {
		return strings.TrimPrefix(path.Clean(written), "/"), true
	}
	at := path.Join(path.Dir(document), written)
	if at == ".." || strings.HasPrefix(at, "../") {
		return "", false
	}
	if at == "." {
		at = ""
	}
	return at, true
}

// isBuiltinAnchor reports whether every file has an anchor: its top, or a line of its
// source.
func isBuiltinAnchor(fragment string) bool {
	if fragment == "" || strings.EqualFold(fragment, "top") {
		return true
	}
	first, last, _ := strings.Cut(fragment, "-")
	return isLine(first) && (last == "" || isLine(last))
}

func isLine(s string) bool {
	digits, ok := strings.CutPrefix(s, "L")
	return ok && digits != "" && strings.Trim(digits, "0123456789C") == ""
}
