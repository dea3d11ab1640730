package links

import "bytes"

// maxEffort bounds the cost of parsing a document, in steps of a few nanoseconds. Some
// Markdown takes quadratic time; ordinary documents are far below the limit.
const maxEffort = 300_000_000

// deepIndent is how far a line may be indented before its depth counts.
const deepIndent = 256

// An effort estimates the cost of parsing a document with goldmark. It assumes the worst
// case for each line and paragraph, code or not.
type effort struct {
	spent       int
	delimiters  int // runs of emphasis marks in this paragraph; a run counts once
	definitions int // link definitions in this paragraph
	footnotes   int // footnotes in the whole document
}

// Classes of bytes for the parser.
const (
	ordinary byte = iota
	bracket       // a byte for which the parser may scan the rest of the line
	delimiter
	leading // a byte that begins a nested quote or list
)

var meaning = func() (m [256]byte) {
	for set, class := range map[string]byte{"[]`": bracket, "*_": delimiter, ">-+0123456789.) \t\r": leading} {
		for _, c := range []byte(set) {
			m[c] = class
		}
	}
	return m
}()

// tooComplex returns the line at which a document exceeds maxEffort, or 0.
func tooComplex(source []byte) int {
	var e effort
	for line := 1; len(source) > 0; line++ {
		text, rest, _ := bytes.Cut(source, []byte("\n"))
		if e.add(text); e.total() > maxEffort {
			return line
		}
		source = rest
	}
	return 0
}

func (e *effort) total() int {
	return e.spent + e.paragraph() + 20*e.footnotes*e.footnotes
}

func (e *effort) paragraph() int { return 2*e.delimiters*e.delimiters + e.definitions*e.definitions }

func (e *effort) add(line []byte) {
	if len(bytes.TrimSpace(line)) == 0 { // the paragraph ends
		e.spent += e.paragraph()
		e.delimiters, e.definitions = 0, 0
		return
	}
	indent := 0
	for indent < len(line) && (meaning[line[indent]] == leading || line[indent] == '*') {
		indent++
	}
	if indent > deepIndent {
		e.spent += 2 * indent * indent
	}
	if text := line[indent:]; bytes.HasPrefix(text, []byte("[")) {
		e.definitions++
		if bytes.HasPrefix(text, []byte("[^")) {
			e.footnotes++
		}
	}
	brackets, last := 0, byte(0)
	for _, c := range line {
		switch class := meaning[c]; {
		case class == bracket:
			brackets++
		case class == delimiter && last != c:
			e.delimiters++
		}
		last = c
	}
	e.spent += brackets * len(line)
}
