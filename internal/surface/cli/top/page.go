package top

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"lockkeeper/internal/flow/progress"
)

type page string

const (
	nowPage    page = "Now"
	decidePage page = "Decide"
	boardPage  page = "Board"
	workPage   page = "Work"
	locksPage  page = "Locks"
	rescuePage page = "Rescue"
)

// A menuEntry is a page and the key that opens it after g, as on the dashboard.
type menuEntry struct {
	key  string
	page page
}

// pages returns the pages in the order of the menu.
func pages() []menuEntry {
	return []menuEntry{{"n", nowPage}, {"d", decidePage}, {"b", boardPage}, {"w", workPage}, {"l", locksPage}, {"e", rescuePage}}
}

// elsewhere names the pages that only the dashboard has, by their keys.
func elsewhere() map[string]string {
	return map[string]string{"t": "the timeline", "r": "the page of the run", "o": "the page of nodes", "a": "the audit log"}
}

// A row is a line of a page. Only rows with an id can be selected.
type row struct {
	id   string // stays the same while the row shows the same thing
	text string // harmless, and styled
	note string // shown at the right end
	tone style
	goes func(m *model) // Enter
}

func (r row) has(text string) bool {
	return strings.Contains(strings.ToLower(ansi.Strip(r.text)), strings.ToLower(text))
}

// title is a heading between rows.
func title(text string) row { return row{text: paint(bold, text)} }

// all returns every row of the page.
func (m *model) all() []row {
	switch m.page {
	case decidePage:
		return m.decideRows()
	case boardPage:
		return m.boardRows()
	case workPage:
		return m.workRows()
	case locksPage:
		return m.lockRows()
	case rescuePage:
		return m.rescueRows()
	}
	return m.nowRows()
}

// View draws the screen.
func (m *model) View() tea.View {
	v := tea.NewView(strings.Join(m.draw(), "\n"))
	v.AltScreen = true
	v.WindowTitle = "lockkeeper"
	return v
}

// The least size that is drawn.
const (
	leastWidth  = 20
	leastHeight = 4
)

// draw returns exactly as many lines as the terminal has, none wider than it.
func (m *model) draw() []string {
	if m.width < leastWidth || m.height < leastHeight {
		return []string{fit("too small", m.width)}
	}
	var head, foot []string
	head = append(head, m.menu())
	foot = append(foot, m.footer()...)
	room := m.height - len(head) - len(foot)
	body := m.body(max(1, room))
	list := append(append(head, body...), foot...)
	for i := range list {
		list[i] = fit(list[i], m.width)
	}
	return list[:min(len(list), m.height)]
}

// body returns exactly room lines.
func (m *model) body(room int) (list []string) {
	switch {
	case m.help:
		list = m.scrolled(m.helpLines(), room)
	case m.open.item != "":
		list = m.logLines(room)
	case m.open.ref != progress.Ref{}:
		list = m.scrolled(m.decisionLines(), room)
	case m.open.kept != "":
		list = m.scrolled(m.keptLines(), room)
	case m.open.cause != "":
		list = m.scrolled(m.causeLines(), room)
	default:
		list = m.pageLines(room)
	}
	for len(list) < room {
		list = append(list, "")
	}
	return list[:room]
}

// scrolled returns the part of a text that is shown, and keeps the scroll position inside of it.
func (m *model) scrolled(text []string, room int) []string {
	m.scroll = max(0, min(m.scroll, len(text)-room))
	return text[m.scroll:min(len(text), m.scroll+room)]
}

// pageLines returns the part of a page that has the selected row: its head as far as there is room,
// and its rows.
func (m *model) pageLines(room int) []string {
	var list []string
	if m.seen.now == nil && m.seen.err == nil {
		return []string{"", paint(dim, " reading …")}
	}
	if m.page == nowPage {
		head := m.nowHead()
		list = append(list, head[:min(len(head), max(1, room/2))]...)
		room -= len(list)
	}
	rows := m.rows()
	at, found := m.mark(rows)
	from := 0
	if found {
		from = max(0, min(at-room/2, len(rows)-room))
	}
	if from > 0 && from+room < len(rows) && at == from { // never hides the selected row
		from--
	}
	for i := from; i < min(len(rows), from+room); i++ {
		list = append(list, m.line(rows[i], found && i == at))
	}
	return list
}

// line draws a row.
func (m *model) line(r row, isSelected bool) string {
	left := " "
	switch {
	case isSelected:
		left = "▸ "
	case r.id != "":
		left = "  "
	}
	text := spread(left+r.text, r.note, m.width-1)
	switch {
	case isSelected:
		return paint(selected, column(ansi.Strip(text), m.width))
	case len(r.tone) > 0:
		return paint(r.tone, text)
	}
	return text
}

// menu draws the pages, the open one in reverse.
func (m *model) menu() string {
	var b strings.Builder
	for _, p := range pages() {
		name := " " + string(p.page) + " "
		if n := m.seen.now; p.page == decidePage && n != nil && n.Needs.Total > 0 {
			name = fmt.Sprintf(" %s %d ", p.page, n.Needs.Total)
		}
		if p.page == m.page {
			name = paint(selected, "["+strings.TrimSpace(name)+"]")
		}
		b.WriteString(name)
	}
	right := ""
	if n := m.seen.now; n != nil && n.Run.Flow != "" {
		right = safe(n.Run.Flow) + " " + paint(toneOf(string(n.Run.State)), plain(string(n.Run.State))) + " "
	}
	return spread(b.String(), right, m.width)
}

// footer draws the last lines: what the last act said, and the keys or the question.
func (m *model) footer() []string {
	if m.ask != nil {
		return m.ask.lines(m.width)
	}
	var list []string
	switch {
	case m.note != "" && m.failed:
		list = append(list, paint(bad, " "+fit(m.note, m.width-1)))
	case m.note != "":
		list = append(list, paint(good, " "+fit(m.note, m.width-1)))
	case len(m.news) > 0 && (m.page != nowPage || m.open != opened{}):
		list = append(list, paint(dim, " "+fit(m.news[len(m.news)-1], m.width-1)))
	}
	return append(list, paint(dim, fit(" "+m.hints(), m.width)))
}

// toneOf returns the style of a state.
func toneOf(state string) style {
	switch state {
	case "failed", "interrupted", "stuck", "lost", "stale", "error", "canceled":
		return bad
	case "active", "running", "done", "complete", "completed", "landed":
		return good
	case "waiting", "stopped", "blocked", "silent", "escalated", "person":
		return attend
	}
	return noStyle
}
