package cli

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// table shows rows in aligned columns. On a terminal the column wide is
// shortened until a row fits: in its middle, or, where it has sentences, at its end.
// What is still too much is cut out of the column also, where there is one.
type table struct {
	heads     []string
	rows      [][]string
	wide      int
	also      int // 0: none
	sentences bool
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) print(f file, paint func(colour, text string) string) {
	widths := make([]int, len(t.heads))
	for _, row := range append([][]string{t.heads}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	if columns := width(f); columns > 0 {
		over := -columns
		for _, w := range widths {
			over += w + 2
		}
		cut := func(column int) {
			least := min(12, widths[column])
			shorter := max(least, widths[column]-max(0, over))
			over -= widths[column] - shorter
			widths[column] = shorter
		}
		if cut(t.wide); t.also > 0 {
			cut(t.also)
		}
	}
	line := func(cells []string) string {
		var b strings.Builder
		for i, cell := range cells {
			if t.sentences && i == t.wide {
				cell = ellipsis(cell, widths[i])
			}
			cell = shorten(cell, widths[i])
			b.WriteString("  " + cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)))
		}
		return strings.TrimRight(b.String(), " ")
	}
	fmt.Fprintln(f, paint(dim, line(t.heads)))
	for _, row := range t.rows {
		fmt.Fprintln(f, line(row))
	}
}

// shorten cuts the middle out of a text that is too wide: the ends of a path
// say most.
func shorten(s string, width int) string {
	runes := []rune(s)
	if len(runes) <= width {
		return s
	}
	head := (width - 1) / 3
	return string(runes[:head]) + "…" + string(runes[len(runes)-(width-1-head):])
}

// ellipsis cuts the end off a text that is too wide: of a sentence the beginning says
// most.
func ellipsis(s string, width int) string {
	if runes := []rune(s); len(runes) > width {
		return string(runes[:max(0, width-1)]) + "…"
	}
	return s
}
