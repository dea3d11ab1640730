package top

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"lockkeeper/internal/surface/cli/term"
)

// styling matches the escape sequences that only set colors.
var styling = regexp.MustCompile(`\x1b\[[0-9;:]*m`)

// safe makes one line of untrusted text harmless. Colors are dropped, everything else that
// could move the cursor or hide text is shown as text. After a carriage return in a line, as
// in progress bars, only the last part counts.
func safe(line string) string {
	line = strings.TrimRight(line, "\r\n")
	if at := strings.LastIndexByte(line, '\r'); at >= 0 {
		line = line[at+1:]
	}
	return term.Clean(strings.ReplaceAll(styling.ReplaceAllString(line, ""), "\t", "    "))
}

// oneLine makes untrusted text of several lines one harmless line.
func oneLine(text string) string { return safe(strings.Join(strings.Fields(text), " ")) }

// lines makes untrusted text harmless, line by line, and wraps it.
func lines(text string, width int) (list []string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		list = append(list, wrap(safe(line), width)...)
	}
	return list
}

// wrap breaks a harmless line that is wider than the screen.
func wrap(line string, width int) []string {
	if ansi.StringWidth(line) <= width {
		return []string{line}
	}
	return strings.Split(ansi.Hardwrap(line, max(1, width), true), "\n")
}

// fit shortens a line at its end to a width, in cells.
func fit(line string, width int) string { return ansi.Truncate(line, max(0, width), "…") }

// column is fit, and fills the line up to the width.
func column(line string, width int) string {
	line = fit(line, width)
	return line + strings.Repeat(" ", max(0, width-ansi.StringWidth(line)))
}

// middle shortens a name in its middle, because its ends matter most.
func middle(name string, width int) string {
	over := ansi.StringWidth(name) - width
	if over <= 0 {
		return name
	}
	head := max(0, (width-1)/3)
	return ansi.Truncate(name, head, "") + "…" + ansi.TruncateLeft(name, ansi.StringWidth(name)-(width-1-head), "")
}

// spread puts the parts of a line at its two ends.
func spread(left, right string, width int) string {
	room := width - ansi.StringWidth(right) - 1
	if right == "" || room < width/3 {
		return fit(left, width)
	}
	return column(left, room) + " " + right
}

// bar draws a share of a whole.
func bar(share float64, width int) string {
	full := int(min(1, max(0, share))*float64(width) + 0.5)
	return strings.Repeat("█", full) + strings.Repeat("░", width-full)
}

func dollars(usd float64) string { return fmt.Sprintf("$%.2f", usd) }

// ago formats how long ago something happened.
func ago(since, now time.Time) string {
	if since.IsZero() {
		return ""
	}
	return term.Span(wholeSeconds(max(0, now.Sub(since))))
}

// wholeSeconds drops the fraction of a second.
func wholeSeconds(d time.Duration) time.Duration { return d / time.Second * time.Second }

// plain replaces the separators of stored words.
func plain(word string) string { return strings.ReplaceAll(word, "_", " ") }

// The styles in use. Terminals without colors show the text alone.
type style = ansi.Style

var (
	noStyle  style
	bold     = style{}.Bold()
	dim      = style{}.Faint()
	good     = style{}.ForegroundColor(ansi.Green)
	bad      = style{}.ForegroundColor(ansi.Red)
	attend   = style{}.ForegroundColor(ansi.Yellow)
	selected = style{}.Reverse(true)
)

// paint styles a text that is harmless.
func paint(s style, text string) string {
	if len(s) == 0 || text == "" {
		return text
	}
	return s.Styled(text)
}
