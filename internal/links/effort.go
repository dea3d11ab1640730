package links

import "bytes"

// maxEffort bounds what a document may cost to parse, in steps of a few
// nanoseconds. Markdown has texts that take parsers the square of their length;
// what is written for readers is far below.
const maxEffort = 300_000_000

// deepIndent is how far a line may be indented before its depth counts.
const deepIndent = 256

// effort estimates what goldmark will need for a document. Each line and each
// paragraph is taken for the worst that it can be, code or not.
type effort struct {
	spent       int
	delimiters  int // of emphasis, in this paragraph; several of a kind are one
	definitions int // of links, in this paragraph
	footnotes   int // in all of the document
}

// What a byte may mean to the parser.
const (
	ordinary byte = iota
	bracket       // it may look through the rest of the line
	delimiter
	leading // of a quote or a list, one inside of the other
)

var meaning = func() (m [256]byte) {
	for set, class := range map[string]byte{"[]`": bracket, "*_": delimiter, ">-+0123456789.) \t\r": leading} {
		for _, c := range []byte(set) {
			m[c] = class
		}
	}
	return m
}()

// tangled finds the line at which a document becomes too much for a parser; 0 when
// it does not.
func tangled(source []byte) int {
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
