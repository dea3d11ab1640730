package enrol

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// node is a value of a JSON text and where it stands there. The text may have comments,
// which some hosts allow in their settings.
type node struct {
	start, end int // of the value; the end is behind it
	kind       byte
	members    []member // of an object
	elements   []*node  // of an array
	value      any      // of anything else
}

type member struct {
	key   string
	start int // of the key
	value *node
}

// syntaxError says where a text is not understood.
type syntaxError struct {
	at     int
	reason string
}

func (e *syntaxError) Error() string { return e.reason }

// scanner reads a JSON text.
type scanner struct {
	text string
	at   int
}

// parseJSON reads a whole text, which is one value.
func parseJSON(text string) (n *node, err error) {
	s := &scanner{text: text}
	defer func() {
		if p := recover(); p != nil {
			wrong, ours := p.(*syntaxError)
			if !ours {
				panic(p)
			}
			n, err = nil, wrong
		}
	}()
	s.at = len(text) - len(strings.TrimPrefix(text, "\ufeff"))
	s.space()
	n = s.read(0)
	if s.space(); s.at < len(text) {
		s.fail("there is more behind the end of the value")
	}
	return n, nil
}

func (s *scanner) fail(format string, args ...any) {
	panic(&syntaxError{at: s.at, reason: fmt.Sprintf(format, args...)})
}

// peek is the next byte; 0 at the end.
func (s *scanner) peek() byte {
	if s.at == len(s.text) {
		return 0
	}
	return s.text[s.at]
}

// space skips white space and comments.
func (s *scanner) space() {
	for {
		rest := s.text[s.at:]
		switch trimmed := strings.TrimLeft(rest, " \t\r\n"); {
		case len(trimmed) < len(rest):
			s.at += len(rest) - len(trimmed)
		case strings.HasPrefix(rest, "//"):
			if end := strings.IndexByte(rest, '\n'); end >= 0 {
				s.at += end
			} else {
				s.at = len(s.text)
			}
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				s.fail("a comment without an end")
			}
			s.at += end + 4
		default:
			return
		}
	}
}

// deepest is how far values may be nested: settings are not.
const deepest = 200

func (s *scanner) read(depth int) *node {
	if depth > deepest {
		s.fail("nested too deeply")
	}
	n := &node{start: s.at, kind: s.peek()}
	switch n.kind {
	case '{':
		s.list('}', func() {
			m := member{start: s.at}
			if s.peek() != '"' {
				s.fail("a name in quotes is missing")
			}
			m.key = s.scalar().(string)
			s.space()
			s.want(':')
			s.space()
			m.value = s.read(depth + 1)
			n.members = append(n.members, m)
		})
	case '[':
		s.list(']', func() { n.elements = append(n.elements, s.read(depth+1)) })
	default:
		n.kind = 0
		n.value = s.scalar()
	}
	n.end = s.at
	return n
}

// list reads what is between brackets, with commas between.
func (s *scanner) list(closing byte, one func()) {
	s.at++
	s.space()
	for first := true; s.peek() != closing; first = false {
		if !first {
			s.want(',')
			s.space()
		}
		one()
		s.space()
	}
	s.at++
}

func (s *scanner) want(c byte) {
	if s.peek() != c {
		if s.at == len(s.text) {
			s.fail("it ends too soon")
		}
		s.fail("%q is missing", c)
	}
	s.at++
}

// scalar reads a string, a number, true, false or null.
func (s *scanner) scalar() (v any) {
	end := s.at
	if s.peek() == '"' {
		for end++; end < len(s.text) && s.text[end] != '"' && s.text[end] != '\n'; end++ {
			if s.text[end] == '\\' {
				end++
			}
		}
		end = min(end+1, len(s.text))
	} else {
		for end < len(s.text) && strings.IndexByte("+-.0123456789abcdefghijklmnopqrstuvwxyzE", s.text[end]) >= 0 {
			end++
		}
	}
	word := s.text[s.at:end]
	if err := json.Unmarshal([]byte(word), &v); err != nil {
		if word == "" {
			s.fail("a value is missing")
		}
		s.fail("%q is no value", clip(word))
	}
	s.at = end
	return v
}

func clip(s string) string {
	if utf8.RuneCountInString(s) > 30 {
		return string([]rune(s)[:30]) + "…"
	}
	return s
}

// index is the number of the member of an object that counts: the last one of its name;
// -1: there is none.
func (n *node) index(key string) int {
	for i, m := range slices.Backward(n.members) {
		if m.key == key {
			return i
		}
	}
	return -1
}

// get is the value of that member.
func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	if i := n.index(key); i >= 0 {
		return n.members[i].value
	}
	return nil
}

// find follows names.
func (n *node) find(place ...string) *node {
	for _, key := range place {
		n = n.get(key)
	}
	return n
}

// text is the string that a node is; empty when it is none.
func (n *node) text() string {
	if n == nil {
		return ""
	}
	s, _ := n.value.(string)
	return s
}

// plain is a node as encoding/json would have it.
func (n *node) plain() any {
	switch n.kind {
	case '{':
		out := map[string]any{}
		for _, m := range n.members {
			out[m.key] = m.value.plain()
		}
		return out
	case '[':
		out := []any{}
		for _, e := range n.elements {
			out = append(out, e.plain())
		}
		return out
	}
	return n.value
}

// spans is where the children of a node stand.
func (n *node) spans() (list [][2]int) {
	for _, m := range n.members {
		list = append(list, [2]int{m.start, m.value.end})
	}
	for _, e := range n.elements {
		list = append(list, [2]int{e.start, e.end})
	}
	return list
}
