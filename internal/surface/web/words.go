package web

import (
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"lockkeeper/internal/flow"
)

// A moment is a time as pages show it: an age and a clock time.
type moment struct {
	ISO   string // for machines
	Whole string // the complete time, for people
	Clock string // the time without the parts that the age implies
	Age   string
}

// momentOf returns how a page shows the time at, seen from the time now. live.js formats ages in
// the same way.
func momentOf(at, now time.Time) moment {
	at = at.In(now.Location())
	clock := at.Format("15:04:05")
	switch {
	case at.Year() != now.Year():
		clock = at.Format("2006-01-02 15:04")
	case at.YearDay() != now.YearDay():
		clock = at.Format("2 Jan 15:04")
	}
	age := span(now.Sub(at)) + " ago"
	if at.After(now) {
		age = "in " + span(at.Sub(now))
	}
	return moment{ISO: at.UTC().Format("2006-01-02T15:04:05.000Z"), Whole: at.Format("Monday, 2 January 2006, 15:04:05 -0700"), Clock: clock, Age: age}
}

func span(d time.Duration) string {
	d = d.Round(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh %02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// briefly formats a duration as exact does, but in whole seconds.
func briefly(d time.Duration) string {
	switch {
	case d < time.Second:
		return "under 1s"
	case d < time.Minute:
		return span(d)
	}
	return exact(d)
}

// exact formats a duration that may be short.
func exact(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm %02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return span(d)
}

func dollars(usd float64) string { return fmt.Sprintf("$%.2f", usd) }

// counted formats a number of things, such as 1 item or 2 items. The caller passes irregular plurals.
func counted(n int, one string, many ...string) string {
	return grouped(int64(n)) + " " + plural(n, one, many...)
}

func plural(n int, one string, many ...string) string {
	switch {
	case n == 1:
		return one
	case len(many) > 0:
		return many[0]
	}
	return one + "s"
}

// grouped formats a number with groups of thousands.
func grouped(n int64) string {
	if n < 0 {
		return "-" + grouped(-n)
	}
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u00a0" + s[i:]
	}
	return s
}

// plain returns the name of a status, a phase or a kind as people read it. The stored status
// error is called failed on every surface.
func plain(name string) string {
	if name == "error" {
		return "failed"
	}
	return strings.ReplaceAll(name, "_", " ")
}

// tone returns the color of a status: good, waiting, failed, needs a person, or running. Other
// statuses have no color.
func tone(status string) string {
	switch status {
	case "complete", "no_change", "completed", "ended", "done", "landed", "committed", "alive", "enforced", "pass", "passed", "approved", "TODO", "answered", "live", "held", "clean", "unchanged":
		return "ok"
	case "queued", "blocked", "waiting", "escalated", "between phases", "interrupted", "stopped", "detected", "unknown", "DEFER", "revoking", "silent", "nobody", "medium":
		return "wait"
	case "error", "failed", "stale", "lost", "unfinished", "dead", "REJECT", "gap", "refused", "advisory", "returned", "undone", "fail", "damaged", "conflict":
		return "bad"
	case "awaiting_decisions", flow.AwaitingReview, "person", "wanted", "high":
		return "you"
	case "active", "running", "dispatched", "preparing", "collecting":
		return "run"
	}
	return phaseTones()[status]
}

// phaseTones returns the color of the statuses of all phases of all flows.
var phaseTones = sync.OnceValue(func() map[string]string {
	tones := map[string]string{}
	for _, f := range flow.All() {
		for _, p := range f.Phases {
			tones[p.Status], tones[p.Fixing] = "run", "run"
			if p.Executor == flow.Human {
				tones[p.Status] = "you"
			}
		}
	}
	delete(tones, "") // Fixing is empty for most phases
	return tones
})

// legible makes every character visible that changes how other characters are read: control characters, bidirectional
// controls and characters without width. It processes the finished page, so no template can forget it. In the
// value of a field, such a character is written as a character reference, so that the browser sends it back
// unchanged.
func legible(page string) string {
	if utf8.ValidString(page) && !strings.ContainsFunc(page, isOdd) {
		return page
	}
	var b strings.Builder
	write := func(text, format string) {
		for _, r := range text {
			if isOdd(r) {
				fmt.Fprintf(&b, format, r)
			} else {
				b.WriteRune(r) // invalid UTF-8 becomes U+FFFD
			}
		}
	}
	const field = `value="` // html/template escapes quotes in text, so this match is in a tag
	for rest, found := page, true; found; {
		var before, value string
		before, rest, found = strings.Cut(rest, field)
		write(before, odd)
		if found {
			value, rest, found = strings.Cut(rest, `"`)
			b.WriteString(field)
			write(value, "&#x%X;")
			b.WriteByte('"')
		}
	}
	return b.String()
}

// odd is the visible form of a character.
const odd = "⟨U+%04X⟩"

// isOdd reports whether a character is invisible or changes how others are read. Line ends and tabs are not odd.
func isOdd(r rune) bool {
	if r < 0x7F { // fast path for ASCII
		return r < ' ' && r != '\n' && r != '\t'
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co) || unicode.Is(unicode.Bidi_Control, r)
}

// oneLine returns a name with its line ends made visible, too.
func oneLine(s string) string {
	if !strings.ContainsAny(s, "\n\t") {
		return s
	}
	return strings.NewReplacer("\n", fmt.Sprintf(odd, '\n'), "\t", fmt.Sprintf(odd, '\t')).Replace(s)
}
