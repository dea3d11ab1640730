package patch

import "strings"

// A piece is a tag, or what is between two tags.
type piece struct {
	from, to int
	kind     pieceKind
	name     string // of a tag
}

type pieceKind uint8

const (
	text pieceKind = iota
	opening
	closing
	empty // a tag without content and closing tag
)

// voids are the elements that never have content.
const voids = " area base br col embed hr img input link meta source track wbr "

func isVoid(name string) bool { return strings.Contains(voids, " "+name+" ") }

// raws are the elements whose content has no tags.
const raws = " script style textarea title "

// A scanner splits HTML into pieces. It understands what html/template produces from well-formed
// templates: quoted attributes, and no comments.
type scanner struct {
	html string
	at   int
	raw  string // the element whose content follows; empty: tags may follow
}

// next returns the next piece, and false at the end.
func (s *scanner) next() (p piece, ok bool) {
	if s.at >= len(s.html) {
		return p, false
	}
	p.from = s.at
	if s.raw != "" {
		end := strings.Index(s.html[s.at:], "</"+s.raw)
		if s.raw = ""; end != 0 {
			s.skip(end)
			p.to = s.at
			return p, true
		}
	}
	if !s.isTag() {
		s.at++
		for s.at < len(s.html) && !s.isTag() {
			s.at++
		}
		p.to = s.at
		return p, true
	}
	p.kind = opening
	s.at++
	if s.html[s.at] == '/' {
		p.kind = closing
		s.at++
	}
	name := s.at
	for s.at < len(s.html) && isNameByte(s.html[s.at]) {
		s.at++
	}
	p.name = strings.ToLower(s.html[name:s.at])
	s.toEnd()
	p.to = s.at
	if p.kind == opening {
		switch {
		case isVoid(p.name), strings.HasSuffix(s.html[p.from:p.to], "/>"):
			p.kind = empty
		case strings.Contains(raws, " "+p.name+" "):
			s.raw = p.name
		}
	}
	return p, true
}

// isTag reports whether a tag starts here.
func (s *scanner) isTag() bool {
	rest := s.html[s.at:]
	return len(rest) > 1 && rest[0] == '<' && (isLetter(rest[1]) || rest[1] == '/' && len(rest) > 2 && isLetter(rest[2]))
}

// skip moves on by a number of bytes; negative: to the end.
func (s *scanner) skip(n int) {
	if n < 0 {
		n = len(s.html) - s.at
	}
	s.at += n
}

// toEnd moves past the end of a tag.
func (s *scanner) toEnd() {
	for quote := byte(0); s.at < len(s.html); s.at++ {
		switch c := s.html[s.at]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '>':
			s.at++
			return
		}
	}
}

func isLetter(c byte) bool   { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
func isNameByte(c byte) bool { return isLetter(c) || '0' <= c && c <= '9' || c == '-' }

// idOf returns the id in a tag, as it is spelled there.
func idOf(tag string) string {
	for at := 1; at < len(tag); {
		end := strings.IndexAny(tag[at:], " \t\r\n\"'")
		if end < 0 {
			return ""
		}
		name := tag[at : at+end]
		if at += end + 1; tag[at-1] != '"' && tag[at-1] != '\'' {
			continue
		}
		end = strings.IndexByte(tag[at:], tag[at-1])
		if end < 0 || name == "id=" {
			return tag[at : at+max(0, end)]
		}
		at += end + 1
	}
	return ""
}
