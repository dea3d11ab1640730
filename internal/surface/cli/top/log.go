package top

import (
	"fmt"
	"strings"

	"lockkeeper/internal/surface/cli/term"
)

// A logView is the log of an item as far as it was read.
type logView struct {
	path    string
	begin   int64  // offset of text
	next    int64  // offset of what is read next
	text    string // the last logKept bytes
	follows bool   // the end is shown
	older   bool   // what comes before is wanted
}

// logKept is how many bytes of a log are kept for scrolling.
const logKept = 256 << 10

// olderStep is how many bytes before the text are read at once, at most one answer of the view.
const olderStep = 64 << 10

// from returns the offset from which to read on: -1 for the end of a log that is not known yet.
func (l *logView) from() int64 {
	switch {
	case l.path == "":
		return -1
	case l.older:
		return max(0, l.begin-olderStep)
	}
	return l.next
}

// take adds what was read. Another log, of the next call of the item, replaces the text.
func (l *logView) take(f facts) {
	log := f.log
	switch {
	case log == nil:
	case log.Path != l.path || log.Size < l.next:
		if l.path != "" && f.of.from > 0 { // the offset was that of another log
			l.path = ""
			return
		}
		*l = logView{path: log.Path, begin: log.From, next: log.Next, text: log.Text, follows: l.follows}
	case log.From == l.next:
		l.text, l.next = l.text+log.Text, log.Next
		if over := len(l.text) - logKept; over > 0 {
			l.text, l.begin = l.text[over:], l.begin+int64(over)
		}
	case log.From < l.begin && log.Next >= l.begin:
		l.text = log.Text[:l.begin-log.From] + l.text
		l.begin, l.older = log.From, false
	}
}

// logKeys returns the keys of a log.
func (m *model) logKeys() []binding {
	moved := func(by func(m *model) int) func(*model) {
		return func(m *model) {
			m.scroll += by(m)
			m.log.follows = false
		}
	}
	page := func(m *model) int { return max(1, m.height-6) }
	list := []binding{
		{"j down", "Down", then(moved(func(*model) int { return 1 }))},
		{"k up", "Up", then(moved(func(*model) int { return -1 }))},
		{"pgdown space ctrl+d", "Further down", then(moved(page))},
		{"pgup ctrl+u", "Further up", then(moved(func(m *model) int { return -page(m) }))},
		{"home", "Begin of what is read", then(moved(func(*model) int { return -1 << 30 }))},
		{"end G", "Follow the end", then(func(m *model) { m.log.follows = true })},
	}
	if m.log.begin > 0 && m.log.path != "" {
		list = append(list, binding{"l", "Older", then(func(m *model) {
			m.log.older, m.log.follows = true, false
			m.wantIt()
		})})
	}
	if it := m.seen.item; it != nil {
		for _, act := range it.Acts {
			if act.Refused != "" || act.Name != "retry" {
				continue
			}
			list = append(list, binding{"r", "Retry", then(func(m *model) { m.retryItem(it) })})
		}
	}
	return list
}

// logLines draws an item and its log, the end if it is followed.
func (m *model) logLines(room int) []string {
	it := m.seen.item
	if it == nil || m.seen.of.item != m.open.item {
		return []string{"", paint(dim, " reading …")}
	}
	name := it.Why.Item.ID
	if it.Unit != "" {
		name = strings.Trim(it.Unit+"/"+it.Part, "/")
	}
	facts := []string{plain(it.State)}
	if it.Why.Item.Phase != "" {
		facts = append(facts, plain(safe(it.Why.Item.Phase)))
	}
	if !it.Since.IsZero() {
		facts = append(facts, "since "+ago(it.Since, m.clock()))
	}
	if n := len(it.Calls); n > 0 {
		facts = append(facts, term.Counted(n, "call"), dollars(it.Cost.USD))
	}
	if it.On != "" {
		facts = append(facts, "on "+safe(it.On))
	}
	head := []string{spread(" "+paint(bold, oneLine(name))+"  "+paint(toneOf(it.State), strings.Join(facts, ", ")), it.Why.Item.ID+" ", m.width)}
	for _, w := range it.Waits {
		head = append(head, paint(attend, " waits for "+oneLine(w.Text)))
	}
	if f := it.Why.Item.Failure; f != nil {
		head = append(head, paint(bad, " "+oneLine(f.Reason)))
	}
	for _, p := range it.Problems {
		head = append(head, paint(bad, " "+oneLine(p)))
	}
	head = append(head[:min(len(head), max(1, room/3))], m.logTitle())
	room -= len(head)
	text := lines(m.log.text, m.width)
	if m.log.follows {
		m.scroll = len(text) - room
	}
	return append(head, m.scrolled(text, max(1, room))...)
}

// logTitle says which part of a log is shown.
func (m *model) logTitle() string {
	switch {
	case m.log.path == "" && m.seen.item.Log == nil:
		return paint(dim, " no output yet")
	case m.log.path == "":
		return paint(dim, " reading …")
	}
	says := "G follows the end"
	if m.log.follows {
		says = "following"
	}
	from := ""
	if m.log.begin > 0 {
		from = fmt.Sprintf(", from byte %d", m.log.begin)
	}
	return paint(dim, fit(fmt.Sprintf(" ── output%s, %s ──", from, says), m.width))
}
