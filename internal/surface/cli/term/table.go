package term

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Table prints rows in aligned columns. On a terminal it shortens column Wide until a row
// fits: in the middle, or at the end if Sentences is set. If that is not enough, it also
// shortens column Also.
type Table struct {
	Heads     []string
	rows      [][]string
	Wide      int
	Also      int // 0: none
	Sentences bool
}

// Add appends a row.
func (t *Table) Add(cells ...string) { t.rows = append(t.rows, cells) }

// Print writes the table to f.
func (t *Table) Print(f File, paint func(color, text string) string) {
	widths := make([]int, len(t.Heads))
	for _, row := range append([][]string{t.Heads}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	if columns := Width(f); columns > 0 {
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
		if cut(t.Wide); t.Also > 0 {
			cut(t.Also)
		}
	}
	line := func(cells []string) string {
		var b strings.Builder
		for i, cell := range cells {
			if t.Sentences && i == t.Wide {
				cell = Ellipsis(cell, widths[i])
			}
			cell = Shorten(cell, widths[i])
			b.WriteString("  " + cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)))
		}
		return strings.TrimRight(b.String(), " ")
	}
	fmt.Fprintln(f, paint(Dim, line(t.Heads)))
	for _, row := range t.rows {
		fmt.Fprintln(f, line(row))
	}
}

// Shorten removes the middle of a text that is too wide. It suits paths, whose ends
// matter most.
func Shorten(s string, width int) string {
	runes := []rune(s)
	if len(runes) <= width {
		return s
	}
	head := (width - 1) / 3
	return string(runes[:head]) + "…" + string(runes[len(runes)-(width-1-head):])
}

// Ellipsis removes the end of a text that is too wide. It suits sentences.
func Ellipsis(s string, width int) string {
	if runes := []rune(s); len(runes) > width {
		return string(runes[:max(0, width-1)]) + "…"
	}
	return s
}
