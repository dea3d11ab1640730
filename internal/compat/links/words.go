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
	s.labels(begin, end)
	run := s.source[begin:end]
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

// labels finds [text][label] with an undefined label, which is not a link.
func (s *scan) labels(begin, end int) {
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
		if bytes.Equal(run[open+1:at], label) { // keys to press: [tab][tab]
			continue
		}
		s.references = append(s.references, reference{
			Reference: Reference{File: s.path, Kind: Definition, Target: unescape(label)},
			start:     begin + at + 2, end: begin + from, problem: Undefined,
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
	if path, ok := pathIn(trimmed); ok {
		s.mention(Code, path, t.Segment.Start+bytes.Index(written, trimmed))
	}
}

// wordAround returns the word around an offset. Words of a run do not overlap, so none is
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
	if len(word) > maxMention || bytes.IndexByte(word, '.') < 0 {
		return nil, false
	}
	written = withoutLine(word)
	name, _, _ := strings.Cut(unescape(written), "#")
	if strings.ContainsAny(name, " \t\r\n*{}$<>|\\[]()=\"'`^,;!?&~@:") || strings.Contains(name, "...") || strings.Contains(name, "//") {
		return nil, false
	}
	if name == "" || name[0] == '/' || name[0] == '-' {
		return nil, false
	}
	base := path.Base(name)
	ending := strings.ToLower(path.Ext(base))
	if len(base) == len(ending) || strings.HasSuffix(name, "/") { // .md alone is an extension
		return nil, false
	}
	first, _, below := strings.Cut(name, "/")
	if !isDocument(base) && !(below && fileEndings[strings.TrimPrefix(ending, ".")]) || below && (isHost(first) || isReserved(first)) {
		return nil, false
	}
	return written, true
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

// fileEndings are the extensions of files that software documentation commonly names.
var fileEndings = func() map[string]bool {
	known := map[string]bool{}
	for _, ending := range strings.Fields(`
		md markdown mdx txt text rst adoc org tex bib pdf doc docx odt xls xlsx csv tsv
		html htm xhtml css scss sass less svg png jpg jpeg gif webp ico bmp mp3 mp4 webm wav woff woff2 ttf
		json jsonl json5 yaml yml toml ini cfg conf properties env xml xsd plist lock sum mod proto graphql avsc ipynb
		go py pyi rb erb rake gemspec js mjs cjs jsx ts tsx vue svelte java kt kts scala groovy gradle clj ex exs erl hs
		c h cc cpp cxx hpp hh m mm cs fs vb rs swift php pl pm lua r jl dart zig nim ml mli asm s v sv vhd
		sh bash zsh fish ps1 bat cmd sql psql tf hcl nix mk cmake bazel bzl dockerfile txtar tmpl tpl haml slim
		zip tar gz tgz bz2 xz jar war whl deb rpm db sqlite log patch diff`) {
		known[ending] = true
	}
	return known
}()
