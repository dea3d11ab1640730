package main

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"os"
	"strconv"
	"strings"
)

// A style is how a cell is drawn.
type style struct {
	color       string // "" is that of the terminal
	bold, faint bool
}

type cell struct {
	char rune
	style
}

// A screen is a terminal without an end: lines never scroll out of it.
type screen struct {
	lines    [][]cell
	row, col int
	now      style
}

var colors = map[int]string{31: "#ff7b72", 32: "#7ee787", 33: "#e3b341", 34: "#79c0ff", 35: "#d2a8ff", 36: "#76e3ea", 90: "#8b949e"}

func main() {
	text, err := io.ReadAll(os.Stdin)
	if err == nil {
		s := &screen{}
		if err = s.show(string(text)); err == nil {
			_, err = os.Stdout.WriteString(s.svg())
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "termsvg:", err)
		os.Exit(1)
	}
}

func (s *screen) show(text string) error {
	for text != "" {
		if sequence, is := strings.CutPrefix(text, "\x1b["); is {
			end := strings.IndexFunc(sequence, func(r rune) bool { return r >= '@' && r <= '~' })
			if end < 0 {
				return fmt.Errorf("the recording ends within a control sequence")
			}
			if err := s.control(sequence[:end], sequence[end]); err != nil {
				return err
			}
			text = sequence[end+1:]
			continue
		}
		r := []rune(text[:min(4, len(text))])[0]
		text = text[len(string(r)):]
		switch r {
		case '\r':
			s.col = 0
		case '\n':
			s.row++
		case '\x1b', '\b', '\t', '\a':
			return fmt.Errorf("control character %q is not supported", r)
		default:
			s.put(r)
		}
	}
	return nil
}

func (s *screen) put(r rune) {
	for len(s.lines) <= s.row {
		s.lines = append(s.lines, nil)
	}
	line := s.lines[s.row]
	for len(line) <= s.col {
		line = append(line, cell{char: ' '})
	}
	line[s.col] = cell{r, s.now}
	s.lines[s.row] = line
	s.col++
}

// control applies a control sequence with its arguments.
func (s *screen) control(args string, end byte) error {
	first, _ := strconv.Atoi(args) // 0 if there are no arguments
	switch end {
	case 'm':
		return s.restyle(args)
	case 'A':
		s.row = max(0, s.row-max(1, first))
	case 'B':
		s.row += max(1, first)
	case 'C':
		s.col += max(1, first)
	case 'G':
		s.col = max(1, first) - 1
	case 'K':
		if s.row < len(s.lines) {
			s.lines[s.row] = s.lines[s.row][:min(len(s.lines[s.row]), map[bool]int{true: 0, false: s.col}[first == 2])]
		}
	case 'J':
		if s.row < len(s.lines) {
			s.lines = s.lines[:s.row+1]
			s.lines[s.row] = s.lines[s.row][:min(len(s.lines[s.row]), s.col)]
		}
	case 'h', 'l': // sets a mode, such as a hidden cursor
	default:
		return fmt.Errorf("control sequence %q is not supported", args+string(end))
	}
	return nil
}

func (s *screen) restyle(args string) error {
	for arg := range strings.SplitSeq(args, ";") {
		switch n, _ := strconv.Atoi(arg); {
		case n == 0:
			s.now = style{}
		case n == 1:
			s.now.bold = true
		case n == 2:
			s.now.faint = true
		case n == 22:
			s.now.bold, s.now.faint = false, false
		case n == 39:
			s.now.color = ""
		case colors[n] != "":
			s.now.color = colors[n]
		default:
			return fmt.Errorf("style %d is not supported", n)
		}
	}
	return nil
}

// These are sizes in pixels.
const charWidth, lineHeight, margin = 8.4, 19, 16

func (s *screen) svg() string {
	for len(s.lines) > 0 && len(s.lines[len(s.lines)-1]) == 0 {
		s.lines = s.lines[:len(s.lines)-1]
	}
	width := 0
	for _, line := range s.lines {
		width = max(width, len(line))
	}
	var b strings.Builder
	w, h := int(float64(width)*charWidth)+2*margin, len(s.lines)*lineHeight+2*margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d">`+"\n", w, h, w, h)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="#0d1117"/>`+"\n")
	fmt.Fprintf(&b, `<g font-family="ui-monospace, SFMono-Regular, Menlo, 'DejaVu Sans Mono', monospace" font-size="14" fill="#e6edf3" xml:space="preserve">`+"\n")
	for i, line := range s.lines {
		if len(line) == 0 {
			continue
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d">`, margin, margin+14+i*lineHeight)
		for from := 0; from < len(line); {
			to := from
			var run strings.Builder
			for to < len(line) && line[to].style == line[from].style {
				run.WriteRune(line[to].char)
				to++
			}
			fmt.Fprintf(&b, `<tspan x="%.1f"%s>%s</tspan>`, margin+float64(from)*charWidth, line[from].attributes(), html.EscapeString(run.String()))
			from = to
		}
		b.WriteString("</text>\n")
	}
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}

func (s style) attributes() (list string) {
	if color := cmp.Or(s.color, map[bool]string{true: "#8b949e"}[s.faint]); color != "" {
		list += ` fill="` + color + `"`
	}
	if s.bold {
		list += ` font-weight="bold"`
	}
	return list
}
