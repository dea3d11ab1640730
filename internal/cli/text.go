package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// clean makes text from elsewhere fit for a terminal: what could move the
// cursor, hide or reorder text is escaped.
func clean(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, isHostile) {
		return s
	}
	quoted := strconv.QuoteToGraphic(s)
	return quoted[1 : len(quoted)-1]
}

func isHostile(r rune) bool { return !unicode.IsGraphic(r) || unicode.Is(unicode.Bidi_Control, r) }

// span says a length of time as people do.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + span(-d)
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

// stamp is a point in time in full.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// until says when something ends, seen from now.
func until(at *time.Time, now time.Time) string {
	switch {
	case at == nil:
		return "never"
	case at.Before(now):
		return span(now.Sub(*at)) + " ago"
	}
	return "in " + span(at.Sub(now))
}

// typed is a command as one would type it.
func typed(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = word
		if word == "" || strings.ContainsAny(word, " \t\n\"'$&;|<>()*?[]#~`\\") {
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}
