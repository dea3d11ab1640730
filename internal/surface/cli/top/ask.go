package top

import (
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// A question is asked below the page: yes or no, or a line of text.
type question struct {
	facts []string // harmless lines above the question
	text  string
	typed bool // the answer is a text, ended with Enter
	free  bool // the text may be empty
	input string
	yes   func(m *model, text string) tea.Cmd
}

// press takes a key. Escape and every key but y cancel a question of yes or no.
func (q *question) press(m *model, msg tea.KeyPressMsg) tea.Cmd {
	key := msg.String()
	switch {
	case key == "esc":
		m.ask = nil
	case q.typed && key == "enter":
		if text := strings.TrimSpace(q.input); text != "" || q.free {
			m.ask = nil
			return q.yes(m, text)
		}
	case q.typed && key == "backspace":
		_, size := utf8.DecodeLastRuneInString(q.input)
		q.input = q.input[:len(q.input)-size]
	case q.typed && key == "ctrl+u":
		q.input = ""
	case q.typed:
		q.paste(msg.Text)
	case key == "y" || key == "Y":
		m.ask = nil
		return q.yes(m, "")
	default:
		m.ask = nil
		m.note, m.failed = "nothing changed", false
	}
	return nil
}

// inputLimit is the most bytes of a typed answer.
const inputLimit = 4_000

// paste adds text to a typed answer, on one line.
func (q *question) paste(text string) {
	if q.typed && len(q.input)+len(text) <= inputLimit {
		q.input += strings.Map(func(r rune) rune {
			if r == '\n' || r == '\r' || r == '\t' {
				return ' '
			}
			return r
		}, text)
	}
}

// lines draws the question.
func (q *question) lines(width int) (list []string) {
	for _, fact := range q.facts {
		list = append(list, " "+fit(fact, width-1))
	}
	if !q.typed {
		return append(list, paint(attend, fit(" "+q.text+" [y/N]", width)))
	}
	text := safe(q.input)
	room := width - ansi.StringWidth(q.text) - 3
	if over := ansi.StringWidth(text) - room; over > 0 && room > 0 {
		text = ansi.TruncateLeft(text, over+1, "…")
	}
	return append(list, " "+paint(attend, q.text)+text+paint(selected, " "), paint(dim, fit(" Enter: continue   Esc: cancel", width)))
}
