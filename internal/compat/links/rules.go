package links

import (
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"lockkeeper"
)

// rules are patterns as in .gitignore. A pattern with a slash is relative to the root, one
// without matches at any depth, and both include everything below.
type rules []rule

type rule struct {
	pattern  string
	anyDepth bool
}

func newRules(key string, patterns []string) (list rules, err error) {
	for _, p := range patterns {
		if !doublestar.ValidatePattern(p) || strings.Trim(p, "/") == "" {
			return nil, &lockkeeper.InputError{Field: key, Value: p, Reason: "not a pattern", Next: "write it like archive, docs/**/draft-*.md or https://example.com/*"}
		}
		p = strings.TrimPrefix(strings.TrimSuffix(p, "/"), "./")
		list = append(list, rule{pattern: p, anyDepth: !strings.Contains(p, "/")})
	}
	return list, nil
}

func (r rules) match(name string) bool {
	for _, one := range r {
		if one.match(name) {
			return true
		}
	}
	return false
}

func (r rule) match(name string) bool {
	if !r.anyDepth {
		return doublestar.MatchUnvalidated(r.pattern, name) || doublestar.MatchUnvalidated(r.pattern+"/**", name)
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == r.pattern || doublestar.MatchUnvalidated(r.pattern, part) {
			return true
		}
	}
	return false
}

// split separates the rules for URLs from those for files.
func (r rules) split() (web, local rules) {
	for _, one := range r {
		if strings.Contains(one.pattern, "://") {
			web = append(web, one)
		} else {
			local = append(local, one)
		}
	}
	return web, local
}
