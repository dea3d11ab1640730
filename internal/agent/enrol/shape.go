package enrol

import (
	"fmt"
	"slices"
	"strings"
)

// misfit is a value that a host does not accept, or may not accept.
type misfit struct {
	at    *node
	place string // the keys that lead to the value
	known bool   // the host is known to reject the value
}

// A shape checks a value and returns nil if the value fits.
type shape func(n *node, place string) *misfit

// kind returns a shape for values that satisfy a predicate.
func kind(is func(n *node) bool) shape {
	return func(n *node, place string) *misfit {
		if is(n) {
			return nil
		}
		return &misfit{n, place, true}
	}
}

// unsure returns a shape whose misfits the host may still accept.
func unsure(one shape) shape {
	return func(n *node, place string) *misfit {
		wrong := one(n, place)
		if wrong != nil {
			wrong.known = false
		}
		return wrong
	}
}

func aText() shape { return kind(isText) }

func aFlag() shape {
	return kind(func(n *node) bool { _, is := n.plain().(bool); return is })
}

func aNumber() shape {
	return kind(func(n *node) bool { v, is := n.plain().(float64); return is && v > 0 })
}

// aCount accepts a positive whole number.
func aCount() shape {
	return kind(func(n *node) bool { v, is := n.plain().(float64); return is && v >= 1 && v == float64(int(v)) })
}

func isText(n *node) bool { _, is := n.plain().(string); return is }

func oneOf(words ...string) shape {
	return kind(func(n *node) bool { return isText(n) && slices.Contains(words, n.text()) })
}

// anURL accepts an HTTP or HTTPS address.
func anURL() shape {
	return kind(func(n *node) bool {
		return strings.HasPrefix(n.text(), "http://") || strings.HasPrefix(n.text(), "https://")
	})
}

func listOf(one shape) shape {
	return func(n *node, place string) *misfit {
		if n.kind() != '[' {
			return &misfit{n, place, true}
		}
		for i, e := range n.elements() {
			if wrong := one(e, fmt.Sprintf("%s[%d]", place, i)); wrong != nil {
				return wrong
			}
		}
		return nil
	}
}

// mapOf accepts an object with any keys.
func mapOf(one shape) shape {
	return func(n *node, place string) *misfit { return each(n, place, func(string) shape { return one }) }
}

// each checks the members of an object against the shapes of their keys.
func each(n *node, place string, of func(key string) shape) *misfit {
	if n.kind() != '{' {
		return &misfit{n, place, true}
	}
	for i, m := range n.children() {
		if n.index(m.key) != i { // hosts use the last duplicate, or reject the file
			return &misfit{m.value, join(place, m.key), false}
		}
		if wrong := of(m.key)(m.value, join(place, m.key)); wrong != nil {
			return wrong
		}
	}
	return nil
}

type members map[string]shape

// object accepts an object with only these members. needs lists the required members.
func object(all members, needs ...string) shape {
	return func(n *node, place string) *misfit {
		for _, key := range needs {
			if n.kind() == '{' && n.find(key) == nil {
				return &misfit{n, join(place, key), true}
			}
		}
		return each(n, place, func(key string) shape {
			if one, known := all[key]; known {
				return one
			}
			return func(n *node, place string) *misfit { return &misfit{n, place, false} }
		})
	}
}

func join(place, key string) string { return strings.TrimPrefix(place+"."+key, ".") }
