package links

import (
	"bytes"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
)

const maxMention = 1024

// words finds URLs and file names in text. Words without a dot or a colon are skipped.
func (s *scan) words(begin, end int) {
	s.undefined(begin, end)
	run := withoutTemplates(s.source[begin:end])
	next := func(what string, from int) int {
		if at := bytes.Index(run[from:], []byte(what)); at >= 0 {
			return from + at
		}
		return len(run)
	}
	url, dot := next("://", 0), next(".", 0)
	for min(url, dot) < len(run) {
		from := 0
		if url < dot {
			from = s.url(begin, run, url)
		} else {
			var left int
			left, from = wordAround(run, dot)
			if written, ok := pathIn(bytes.TrimRight(run[left:from], ".:!?")); ok {
				s.mention(Mention, written, begin+left)
			}
		}
		if url < from {
			url = next("://", from)
		}
		if dot < from {
			dot = next(".", from)
		}
	}
}

// url adds the URL around the :// at an offset of a run, if it is a web URL. It returns
// where to continue.
func (s *scan) url(base int, run []byte, colon int) int {
	start := -1
	for _, scheme := range []string{"https", "http"} {
		if at := colon - len(scheme); at >= 0 && strings.EqualFold(string(run[at:colon]), scheme) {
			start = at
			break
		}
	}
	end := colon + len("://")
	for end < len(run) && run[end] > ' ' && strings.IndexByte("<>\"`", run[end]) < 0 {
		end++
	}
	if start < 0 {
		return end
	}
	written := trimURL(run[start:end])
	if len(written) > len("https://") {
		s.target(Mention, written, base+start)
	}
	return end
}

// trimURL removes the punctuation of the surrounding sentence from the end of a URL, and a
// closing bracket without an opening one.
func trimURL(url []byte) []byte {
	opened, closed := bytes.Count(url, []byte("(")), bytes.Count(url, []byte(")"))
	for len(url) > 0 {
		switch c := url[len(url)-1]; {
		case c == ')' && closed > opened:
			closed--
		case strings.IndexByte("?!.,:;*_~'\"]|", c) < 0:
			return url
		}
		url = url[:len(url)-1]
	}
	return url
}

// undefined finds [text][label] with an undefined label, which is not a link.
func (s *scan) undefined(begin, end int) {
	run := s.source[begin:end]
	for from := 0; ; {
		at := bytes.Index(run[from:], []byte("]["))
		if at < 0 {
			return
		}
		at += from
		size := bytes.IndexAny(run[at+2:], "[]")
		if size < 0 {
			return
		}
		open := bytes.LastIndexByte(run[from:at], '[') + from
		from = at + 2 + size
		label := bytes.TrimSpace(run[at+2 : from])
		if open < 0 || run[from] != ']' || len(label) == 0 || label[0] == '^' || s.indexing(begin+open) {
			continue
		}
		if bytes.Equal(run[open+1:at], label) { // such a text shows keys to press, as in [tab][tab]
			continue
		}
		s.references = append(s.references, reference{
			Reference: Reference{File: s.path, Kind: Definition, Target: unescape(label)},
			start:     begin + at + 2, end: begin + from, problem: Undefined, text: string(run[open+1 : at]),
		})
	}
}

// indexing reports whether a bracket belongs to the word before it, as in a[i][j], or is
// escaped or missing.
func (s *scan) indexing(open int) bool {
	if open < 0 || s.source[open] != '[' {
		return true
	}
	before, _ := utf8.DecodeLastRune(s.source[:open])
	return before == '\\' || before == ']' || before == ')' || before == '_' || unicode.IsLetter(before) || unicode.IsDigit(before)
}

func (s *scan) mention(kind Kind, written []byte, at int) {
	target := string(written)
	if kind != Code {
		target = unescape(written)
	}
	s.references = append(s.references, reference{
		Reference: Reference{File: s.path, Kind: kind, Target: target},
		start:     at, end: at + len(written),
	})
}

// code adds the text between backticks if it is a path.
func (s *scan) code(n *ast.CodeSpan) {
	if s.inside > 0 || n.ChildCount() != 1 {
		return
	}
	t, ok := n.FirstChild().(*ast.Text)
	if !ok {
		return
	}
	written := t.Segment.Value(s.source)
	trimmed := bytes.TrimSpace(written)
	at := t.Segment.Start + bytes.Index(written, trimmed)
	if path, ok := pathIn(trimmed); ok {
		s.mention(Code, path, at)
	} else if path, ok := looseIn(trimmed); ok {
		s.mention(Code, path, at)
		s.references[len(s.references)-1].loose = true
	}
}

// wordAround returns the word around an offset. The words of run do not overlap, so no byte is
// examined twice.
func wordAround(run []byte, at int) (left, right int) {
	left, right = at, at
	for left > 0 {
		r, size := utf8.DecodeLastRune(run[:left])
		if !inWord(r) {
			break
		}
		left -= size
	}
	for right < len(run) {
		r, size := utf8.DecodeRune(run[right:])
		if !inWord(r) {
			break
		}
		right += size
	}
	return left, right
}

// inWord reports whether a character can be part of a word that may be a path.
func inWord(r rune) bool {
	if r < utf8.RuneSelf {
		return r > ' ' && !strings.ContainsRune("\"'`()<>[]|,;", r)
	}
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r))
}

// pathIn returns the path that a word consists of. It needs a known file extension and,
// unless it is a document, a directory: a bare name is often a program or a method. Words
// with spaces, wildcards, placeholders or a host name are not paths.
func pathIn(word []byte) (written []byte, ok bool) {
	written, name, ok := plainPath(word)
	if !ok || strings.IndexByte(name, '.') < 0 || strings.HasSuffix(name, "/") {
		return nil, false
	}
	base := path.Base(name)
	ending := strings.ToLower(path.Ext(base))
	if len(base) == len(ending) { // .md alone is an extension
		return nil, false
	}
	known := strings.Contains(name, "/") && fileEndings[strings.TrimPrefix(ending, ".")]
	return written, known || isDocument(base)
}

// looseIn returns the path between backticks that probably is one: a directory, a path
// without a known extension, or the name of a source file.
func looseIn(word []byte) (written []byte, ok bool) {
	written, name, ok := plainPath(word)
	if !ok || strings.Trim(name, "./") == "" {
		return nil, false
	}
	bare := !strings.Contains(name, "/")
	return written, !bare || sourceNames[name] || len(path.Ext(name)) < len(name) && sourceEndings[strings.TrimPrefix(path.Ext(name), ".")]
}

// plainPath returns a word and the path in it, without a line or a heading. ok is false if
// the word cannot be a path of this repository, or has a placeholder.
func plainPath(word []byte) (written []byte, name string, ok bool) {
	if len(word) > maxMention {
		return nil, "", false
	}
	written = withoutLine(word)
	name, _, _ = strings.Cut(unescape(written), "#")
	if strings.ContainsAny(name, " \t\r\n*{}$<>|\\[]()=\"'`^,;!?&~@:") || strings.Contains(name, "...") || strings.Contains(name, "//") {
		return nil, "", false
	}
	if name == "" || name[0] == '/' || name[0] == '-' || isPlaceholder(name) || productNames[path.Base(name)] {
		return nil, "", false
	}
	first, _, below := strings.Cut(name, "/")
	return written, name, !below || !isHost(first) && !isReserved(first)
}

// isPlaceholder reports whether a path stands for others: path/to/file.md, Chapter_XX.md or
// YYYY-MM-DD.log.
func isPlaceholder(name string) bool {
	if strings.Contains("/"+name, "/path/to/") {
		return true
	}
	for _, part := range strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) }) {
		if len(part) > 1 && strings.Trim(part, "X") == "" || len(part) > 1 && strings.Trim(part, "N") == "" || strings.HasPrefix(part, "YYYY") {
			return true
		}
	}
	return false
}

// isTemplate reports whether a target is written by a template.
func isTemplate(target []byte) bool {
	return bytes.Contains(target, []byte("{{")) || bytes.Contains(target, []byte("{%"))
}

// withoutTemplates returns text with spaces instead of the tags of templates, such as
// {{< ref "x.md" >}}. A site's generator reads them, relative to its own directories.
func withoutTemplates(run []byte) []byte {
	blank := run
	for _, tag := range [][2]string{{"{{", "}}"}, {"{%", "%}"}} {
		for from := 0; ; {
			begin := bytes.Index(blank[from:], []byte(tag[0]))
			if begin < 0 {
				break
			}
			begin += from
			size := bytes.Index(blank[begin:], []byte(tag[1]))
			if size < 0 {
				break
			}
			from = begin + size + len(tag[1])
			if &blank[0] == &run[0] {
				blank = bytes.Clone(run)
			}
			for i := begin; i < from; i++ {
				blank[i] = ' '
			}
		}
	}
	return blank
}

// withoutLine removes the line numbers from a position such as main.go:12:3.
func withoutLine(word []byte) []byte {
	for range 2 {
		colon := bytes.LastIndexByte(word, ':')
		if colon < 0 || colon == len(word)-1 || len(bytes.Trim(word[colon+1:], "0123456789-")) > 0 {
			break
		}
		word = word[:colon]
	}
	return word
}

// isHost reports whether the first part of a path looks like a host name.
func isHost(name string) bool {
	dot := strings.LastIndexByte(name, '.')
	if dot <= 0 || strings.Trim(name, ".") == "" || len(name)-dot < 3 {
		return false
	}
	for _, c := range []byte(name[dot+1:]) {
		if !isLetter(c) {
			return false
		}
	}
	return true
}

// isDocument reports whether a file is a document that can be scanned.
func isDocument(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".md", ".markdown", ".mdx":
		return true
	}
	return false
}
