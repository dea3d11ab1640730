package links

import (
	"net/url"
	"path"
	"strings"
)

// target is where a reference leads.
type target struct {
	url      string // on the web; empty: in the repository
	path     string // as written, decoded, with slashes; empty: the document itself
	literal  string // the same, not decoded
	fragment string // decoded
	rest     string // query and fragment as written
	foreign  bool   // neither: mail, telephone and the like
	machine  bool   // a path of one machine
}

// targetOf takes a target apart as a browser does: a scheme, or a path with a query
// and an anchor behind it.
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

// schemeOf is the scheme of a URL in lower case. One letter is a drive, and what
// has a dot in it is the name of a file.
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

// decoded resolves %20 and the like; what is no such code stays as it is.
func decoded(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}

// joined is a path as seen from a document, from the root; false when it leads out
// of it. One that begins with a slash is seen from the root.
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

// isPlace reports whether an anchor is one that every file has: its top, or a line
// of its source.
func isPlace(fragment string) bool {
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
