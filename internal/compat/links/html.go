package links

import (
	"bytes"
	"strings"
)

type tag struct {
	name       string // name of the tag, in lower case
	closing    bool
	start, end int // position of the tag in the text
	attributes []attribute
}

type attribute struct {
	name       string // name of the attribute, in lower case
	start, end int    // position of the value, without quotes
}

// tags visits the tags in a piece of HTML, except in comments, scripts and styles. It
// reads each byte a fixed number of times, even if a tag is never closed.
func tags(html []byte, visit func(tag)) {
	for i := 0; i < len(html); {
		next := bytes.IndexByte(html[i:], '<')
		if next < 0 {
			return
		}
		i += next
		if bytes.HasPrefix(html[i:], []byte("<!--")) {
			if i = after(html, i+4, "-->"); i < 0 {
				return
			}
			continue
		}
		t, ok := tagAt(html, i)
		if !ok {
			i++
			continue
		}
		if t.end < 0 { // the tag is never closed
			return
		}
		visit(t)
		i = t.end
		if !t.closing && (t.name == "script" || t.name == "style") {
			if i = after(html, i, "</"+t.name); i < 0 {
				return
			}
		}
	}
}

// after returns the end of the first occurrence of text at or after i, or -1.
func after(html []byte, i int, text string) int {
	found := indexFold(html[i:], text)
	if found < 0 {
		return -1
	}
	return i + found + len(text)
}

// indexFold finds a lower-case text, ignoring case.
func indexFold(in []byte, text string) int {
	for i := 0; i+len(text) <= len(in); i++ {
		next := bytes.IndexByte(in[i:], text[0])
		if next < 0 {
			return -1
		}
		if i += next; i+len(text) <= len(in) && strings.EqualFold(string(in[i:i+len(text)]), text) {
			return i
		}
	}
	return -1
}

// tagAt parses the tag at i. Its end is -1 if the tag is not closed.
func tagAt(html []byte, i int) (t tag, ok bool) {
	t.start, t.end = i, -1
	i++
	if i < len(html) && html[i] == '/' {
		t.closing = true
		i++
	}
	name := i
	for i < len(html) && isNameByte(html[i]) {
		i++
	}
	if i == name || !isLetter(html[name]) {
		return t, false
	}
	t.name = strings.ToLower(string(html[name:i]))
	for i < len(html) {
		switch c := html[i]; {
		case c == '>':
			t.end = i + 1
			return t, true
		case isNameByte(c):
			var a attribute
			a, i = attributeAt(html, i)
			if i < 0 {
				return t, true
			}
			t.attributes = append(t.attributes, a)
		default:
			i++
		}
	}
	return t, true
}

// attributeAt parses the attribute at i and returns where to continue, or -1 if its quotes
// are not closed.
func attributeAt(html []byte, i int) (a attribute, next int) {
	name := i
	for i < len(html) && isNameByte(html[i]) {
		i++
	}
	a.name = strings.ToLower(string(html[name:i]))
	a.start, a.end = i, i
	at := skipBlank(html, i)
	if at == len(html) || html[at] != '=' {
		return a, i
	}
	at = skipBlank(html, at+1)
	if at < len(html) && (html[at] == '"' || html[at] == '\'') {
		size := bytes.IndexByte(html[at+1:], html[at])
		if size < 0 {
			return a, -1
		}
		a.start, a.end = at+1, at+1+size
		return a, a.end + 1
	}
	a.start = at
	for at < len(html) && html[at] != '>' && !isBlank(html[at]) {
		at++
	}
	a.end = at
	return a, at
}

func skipBlank(html []byte, i int) int {
	for i < len(html) && isBlank(html[i]) {
		i++
	}
	return i
}

func isBlank(c byte) bool  { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' }
func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isNameByte(c byte) bool {
	return isLetter(c) || '0' <= c && c <= '9' || c == '-' || c == '_' || c == ':'
}
