package links

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// newParser returns a parser for GitHub's Markdown, as far as links are concerned. It is
// safe for concurrent use.
func newParser() parser.Parser {
	return goldmark.New(goldmark.WithExtensions(extension.Table, extension.Footnote)).Parser()
}

// A reference is a Reference with the position of its target in the document.
type reference struct {
	Reference
	start, end int
	to         target
	at         string // the file that the reference leads to, existing or not, from the root
	anchored   string // the document whose anchor it names; empty if none is checked

	loose   bool    // a directory or a name between backticks, which may be something else
	text    string  // text and label of [text][label]
	problem Problem // empty if valid
	reason  string
	lenient string // why a problem is only informational; empty if it is enforced
	dropped bool   // the text turned out not to be a reference
	suggestion
}

// inText reports whether the reference is a path in the text, and not a link.
func (r *reference) inText() bool { return r.Kind == Code || r.Kind == Mention }

type scan struct {
	path       string
	source     []byte
	references []reference
	anchors    anchors
	labels     bool // the document defines labels of links
	inside     int  // depth of nested links, whose text contains no mentions
}

// parse finds the references of a document, in order, and its anchors.
func parse(p parser.Parser, path string, source []byte) *scan {
	s := &scan{path: path, source: source, references: make([]reference, 0, 2+bytes.Count(source, []byte("](")))}
	// Spaces replace the front matter so that offsets stay the same.
	body := source
	if n := frontMatter(source); n > 0 {
		body = slices.Clone(source)
		for i := range body[:n] {
			if body[i] != '\n' {
				body[i] = ' '
			}
		}
		s.source = body
	}
	s.children(p.Parse(text.NewReader(body)))
	slices.SortStableFunc(s.references, func(a, b reference) int { return a.start - b.start })
	line, seen := 1, 0
	for i := range s.references {
		r := &s.references[i]
		line += bytes.Count(source[seen:r.start], []byte("\n"))
		r.Line, seen = line, r.start
	}
	return s
}

// frontMatter returns the length of the settings between two lines of dashes at the start.
// A line of dashes followed by an empty one is a thematic break.
func frontMatter(source []byte) int {
	first, rest, _ := bytes.Cut(source, []byte("\n"))
	second := bytes.TrimLeft(rest, " \t\r")
	if string(bytes.TrimRight(first, " \t\r")) != "---" || len(second) == 0 || second[0] == '\n' {
		return 0
	}
	for at := len(source) - len(rest); at < len(source); {
		line, _, _ := bytes.Cut(source[at:], []byte("\n"))
		if trimmed := string(bytes.TrimRight(line, " \t\r")); trimmed == "---" || trimmed == "..." {
			return at + len(line)
		}
		at += len(line) + 1
	}
	return 0
}

// children visits the children of a node. It joins adjacent pieces of text that goldmark
// has split.
func (s *scan) children(parent ast.Node) {
	outer := s.inside
	begin, end := 0, 0
	flush := func() {
		if begin < end && s.inside == 0 {
			s.words(begin, end)
		}
		begin, end = 0, 0
	}
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		t, ok := n.(*ast.Text)
		if !ok {
			flush()
			s.node(n)
			continue
		}
		if t.Segment.Start != end {
			flush()
			begin = t.Segment.Start
		}
		if end = t.Segment.Stop; t.SoftLineBreak() || t.HardLineBreak() {
			flush()
		}
	}
	flush()
	s.inside = outer // an unclosed <a> ends with its block
}

func (s *scan) node(n ast.Node) {
	switch n := n.(type) {
	case *ast.CodeBlock, *ast.FencedCodeBlock:
	case *ast.Heading:
		text, id := cutID(s.plain(n))
		s.anchors.heading(text)
		s.anchors.id(id)
		s.children(n)
	case *ast.HTMLBlock:
		if begin, end := extent(n); begin < end {
			outer := s.inside
			s.html(begin, end)
			s.inside = outer
		}
	case *ast.RawHTML:
		if k := n.Segments.Len(); k > 0 {
			s.html(n.Segments.At(0).Start, n.Segments.At(k-1).Stop)
		}
	case *ast.LinkReferenceDefinition:
		s.labels = true
		s.target(Definition, n.Destination, n.Pos())
	case *ast.Link:
		if n.Reference == nil {
			s.target(Link, n.Destination, n.Pos())
		}
		s.linked(n)
	case *ast.Image:
		if n.Reference == nil {
			s.target(Image, n.Destination, n.Pos())
		}
		s.linked(n)
	case *ast.AutoLink:
		if n.AutoLinkType == ast.AutoLinkURL {
			s.target(Link, n.Label(s.source), n.Pos())
		}
	case *ast.CodeSpan:
		s.code(n)
	case *extast.FootnoteLink, *extast.FootnoteBacklink:
	default:
		s.children(n)
	}
}

func (s *scan) linked(n ast.Node) {
	s.inside++
	s.children(n)
	s.inside--
}

func extent(n *ast.HTMLBlock) (begin, end int) {
	if lines := n.Lines(); lines.Len() > 0 {
		begin, end = lines.At(0).Start, lines.At(lines.Len()-1).Stop
	} else if n.HasClosure() {
		begin = n.ClosureLine.Start
	}
	if n.HasClosure() {
		end = max(end, n.ClosureLine.Stop)
	}
	return begin, end
}

// target adds a reference. The text of its target begins at the offset near, or after it.
func (s *scan) target(kind Kind, written []byte, near int) {
	if isTemplate(written) {
		return
	}
	start := s.offset(written, near)
	r := reference{Reference: Reference{File: s.path, Kind: kind, Target: unescape(written)}, start: start, end: start + len(written)}
	if len(written) == 0 {
		r.problem = Empty
	}
	s.references = append(s.references, r)
}

// offset returns the position of a piece of the source. Goldmark usually returns slices of
// the source, whose capacity reveals their position; otherwise it searches after the offset near.
func (s *scan) offset(piece []byte, near int) int {
	near = min(max(near, 0), len(s.source))
	if len(piece) == 0 {
		return near
	}
	if at := cap(s.source) - cap(piece); at >= 0 && at < len(s.source) && &s.source[at] == &piece[0] {
		return at
	}
	return near + max(0, bytes.Index(s.source[near:], piece))
}

// unescape removes backslash escapes and resolves entities.
func unescape(written []byte) string {
	if bytes.IndexByte(written, '\\') >= 0 {
		written = util.UnescapePunctuations(written)
	}
	if bytes.IndexByte(written, '&') >= 0 {
		written = util.ResolveEntityNames(util.ResolveNumericReferences(written))
	}
	return string(written)
}

// plain returns the text of a node as GitHub uses it for a heading's id, without images
// and HTML.
func (s *scan) plain(n ast.Node) string {
	var b strings.Builder
	s.plainInto(&b, n)
	return b.String()
}

func (s *scan) plainInto(b *strings.Builder, parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			if n.IsRaw() {
				b.Write(n.Segment.Value(s.source))
			} else {
				b.WriteString(unescape(n.Segment.Value(s.source)))
			}
		case *ast.String:
			b.Write(n.Value)
		case *ast.AutoLink:
			b.Write(n.Label(s.source))
		case *ast.Image, *ast.RawHTML, *extast.FootnoteLink:
		default:
			s.plainInto(b, n)
		}
	}
}

// html visits a piece of HTML and adds its links, ids and headings.
func (s *scan) html(begin, end int) {
	piece := s.source[begin:end]
	heading := -1
	tags(piece, func(t tag) {
		isHeading := len(t.name) == 2 && t.name[0] == 'h' && '1' <= t.name[1] && t.name[1] <= '6'
		switch {
		case isHeading && t.closing && heading >= 0:
			s.anchors.heading(strings.TrimSpace(withoutTags(piece[heading:t.start])))
			heading = -1
		case isHeading:
			heading = t.end
		case t.name == "a" && t.closing:
			s.inside = max(0, s.inside-1)
		}
		for _, a := range t.attributes {
			value := piece[a.start:a.end]
			switch {
			case a.name == "id", a.name == "name" && t.name == "a":
				s.anchors.id(unescape(value))
			case a.name == "href" && t.name == "a":
				s.inside++
				s.target(Link, bytes.TrimSpace(value), begin+a.start)
			case a.name == "src" && slices.Contains([]string{"img", "video", "audio", "source"}, t.name):
				s.target(Image, bytes.TrimSpace(value), begin+a.start)
			}
		}
	})
}

func withoutTags(html []byte) string {
	var b strings.Builder
	last := 0
	tags(html, func(t tag) {
		b.WriteString(unescape(html[last:t.start]))
		last = t.end
	})
	b.WriteString(unescape(html[last:]))
	return b.String()
}

// anchors are the ids of a document, as GitHub makes them.
type anchors struct {
	slugs map[string]int  // number of headings with each slug
	ids   map[string]bool // explicit ids
}

// heading adds the id of a heading. A repeated id gets the suffix -1.
func (a *anchors) heading(text string) {
	if a.slugs == nil {
		a.slugs = map[string]int{}
	}
	slug := slugOf(text)
	unique := slug
	for {
		if _, taken := a.slugs[unique]; !taken {
			break
		}
		a.slugs[slug]++
		unique = slug + "-" + strconv.Itoa(a.slugs[slug])
	}
	a.slugs[unique] = 0
}

// id adds an explicit id.
func (a *anchors) id(id string) {
	if id == "" {
		return
	}
	if a.ids == nil {
		a.ids = map[string]bool{}
	}
	a.ids[id] = true
}

func (a *anchors) has(id string) bool {
	_, ok := a.slugs[id]
	return ok || a.ids[id]
}

// slugOf returns GitHub's id of a heading: lower case, spaces as dashes, and only letters,
// marks, digits, dashes and connectors.
func slugOf(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || unicode.IsLetter(r) || unicode.IsMark(r) || unicode.In(r, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic):
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}

// cutID splits an explicit id, {#like-this}, from the end of a heading.
func cutID(text string) (rest, id string) {
	trimmed := strings.TrimRight(text, " ")
	begin := strings.LastIndex(trimmed, "{#")
	if begin < 0 || !strings.HasSuffix(trimmed, "}") {
		return text, ""
	}
	id, _, _ = strings.Cut(trimmed[begin+2:len(trimmed)-1], " ") // classes may follow
	return strings.TrimRight(trimmed[:begin], " "), id
}
