package term

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Clean makes untrusted text safe for a terminal. It escapes everything that could move the cursor, or hide or
// reorder text.
func Clean(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, isHostile) {
		return s
	}
	quoted := strconv.QuoteToGraphic(s)
	return quoted[1 : len(quoted)-1]
}

func isHostile(r rune) bool { return !unicode.IsGraphic(r) || unicode.Is(unicode.Bidi_Control, r) }

// Span formats a duration for people.
func Span(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + Span(-d)
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// StampForm is the layout of times for people: local, with the zone.
const StampForm = "2006-01-02 15:04:05 -0700"

// Stamp formats a time for people. JSON has UTC, in the format of RFC 3339.
func Stamp(t time.Time) string { return t.Local().Format(StampForm) }

// Until formats when something ends, relative to now.
func Until(at *time.Time, now time.Time) string {
	switch {
	case at == nil:
		return "never"
	case at.Before(now):
		return Span(now.Sub(*at)) + " ago"
	}
	return "in " + Span(at.Sub(now))
}

// Counted returns a number with its noun: "1 grant", "2 grants".
func Counted(n int, what string) string { return fmt.Sprintf("%d %s", n, Plural(n, what, what+"s")) }

// Join describes each element of a list, separated by commas.
func Join[T any](list []T, describe func(T) string) string {
	parts := make([]string, len(list))
	for i, element := range list {
		parts[i] = describe(element)
	}
	return strings.Join(parts, ", ")
}

// JoinFew is Join for up to limit elements. It counts the others.
func JoinFew[T any](list []T, limit int, describe func(T) string) string {
	text := Join(list[:min(limit, len(list))], describe)
	if more := len(list) - limit; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Plural returns the word one if n is 1, and the word more for any other number.
func Plural(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

// Clock formats a time near now: local, and without the date if it is today.
func (io *IO) Clock(t time.Time) string {
	now := io.Now()
	t = t.In(now.Location())
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04")
	}
	return t.Format("Jan 2 15:04")
}

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

func (t *Table) Add(cells ...string) { t.rows = append(t.rows, cells) }

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
