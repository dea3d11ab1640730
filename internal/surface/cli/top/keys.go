package top

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"lockkeeper/internal/flow/progress"
)

// A binding is a key and what it does. The help lists the bindings that apply now.
type binding struct {
	keys string // separated by spaces; the first is shown
	says string
	does func(m *model) tea.Cmd
}

// then makes a binding's function from one without a command.
func then(do func(m *model)) func(*model) tea.Cmd {
	return func(m *model) tea.Cmd { do(m); return nil }
}

// bindings returns the keys that apply now, those of the open thing first.
func (m *model) bindings() (list []binding) {
	switch {
	case m.open.item != "":
		list = m.logKeys()
	case m.open.ref != progress.Ref{}:
		list = append(m.answerKeys(m.open.ref), m.decisionKeys()...)
	case m.open != opened{}:
		list = textKeys()
	default:
		list = m.pageKeys()
	}
	if m.open.cause != "" {
		list = append(m.causeKeys(m.open.cause), list...)
	}
	if m.open != (opened{}) {
		list = append(list, binding{"esc backspace", "Back", then((*model).back)})
	}
	return append(list,
		binding{"?", "Help", then(func(m *model) { m.help, m.scroll = !m.help, 0 })},
		binding{"q", "Close the screen", (*model).quit},
		binding{"ctrl+c", m.interruptSays(), then(func(m *model) { m.interrupt() })},
		binding{"ctrl+l", "Draw the screen again", func(*model) tea.Cmd { return tea.ClearScreen }},
		binding{".", "Read everything again", then((*model).wantIt)},
	)
}

func (m *model) interruptSays() string {
	if m.opt.Conducts {
		return "Finish running agents and start no new ones; once more stops them"
	}
	return "Close the screen"
}

// pageKeys returns the keys of a page and its selected row.
func (m *model) pageKeys() (list []binding) {
	if r, ok := m.current(); ok {
		if m.page == decidePage {
			if ref, ok := m.refOf(r.id); ok {
				list = append(list, m.answerKeys(ref)...)
			}
		}
		if id, ok := strings.CutPrefix(r.id, causeRow); ok {
			list = append(list, m.causeKeys(id)...)
		}
		if r.goes != nil {
			list = append(list, binding{"enter", "Open", then(r.goes)})
		}
	}
	if m.page == nowPage {
		list = append(list, binding{"d", "Decide", then(func(m *model) { m.turn(decidePage) })})
	}
	list = append(list,
		binding{"j down", "Next row", then(func(m *model) { m.move(1) })},
		binding{"k up", "Previous row", then(func(m *model) { m.move(-1) })},
		binding{"pgdown space ctrl+d", "Further down", then(func(m *model) { m.move(max(1, m.height/2)) })},
		binding{"pgup ctrl+u", "Further up", then(func(m *model) { m.move(-max(1, m.height/2)) })},
		binding{"home", "First row", then(func(m *model) { m.move(-1 << 20) })},
		binding{"end G", "Last row", then(func(m *model) { m.move(1 << 20) })},
		binding{"/", "Find", then((*model).startFind)},
	)
	if m.find != "" {
		list = append(list, binding{"esc", "List everything again", then(func(m *model) { m.find = "" })})
	}
	if m.page == decidePage && len(m.given) > 0 {
		list = append(list, binding{"u", "Withdraw the last answer", then((*model).withdraw)})
	}
	return list
}

// textKeys returns the keys of a text that is longer than the screen.
func textKeys() []binding {
	return []binding{
		{"down j", "Down", then(func(m *model) { m.scroll++ })},
		{"up k", "Up", then(func(m *model) { m.scroll-- })},
		{"pgdown space ctrl+d", "Further down", then(func(m *model) { m.scroll += max(1, m.height-4) })},
		{"pgup ctrl+u", "Further up", then(func(m *model) { m.scroll -= max(1, m.height-4) })},
		{"home", "Begin", then(func(m *model) { m.scroll = 0 })},
		{"end G", "End", then(func(m *model) { m.scroll = 1 << 30 })},
	}
}

// menuKeys returns what follows g.
func menuKeys() (list []binding) {
	for _, p := range pages() {
		list = append(list, binding{"g " + p.key, string(p.page), then(func(m *model) { m.turn(p.page) })})
	}
	for key, what := range elsewhere() {
		list = append(list, binding{"g " + key, "", then(func(m *model) { m.note, m.failed = what+" is on the dashboard: lockkeeper login", false })})
	}
	return list
}

// press carries out a key.
func (m *model) press(msg tea.KeyPressMsg) tea.Cmd {
	key := msg.String()
	if m.ask != nil && key != "ctrl+c" {
		return m.ask.press(m, msg)
	}
	if m.help && key != "ctrl+c" {
		if i := slices.IndexFunc(textKeys(), func(b binding) bool { return b.has(key) }); i >= 0 {
			return textKeys()[i].does(m)
		}
		m.help = false
		if key == "q" || key == "esc" || key == "?" {
			return nil
		}
	}
	list := append(m.bindings(), menuKeys()...)
	pressed := strings.TrimSpace(m.first + " " + key)
	if m.first != "" && !slices.ContainsFunc(list, func(b binding) bool { return b.has(pressed) }) {
		pressed = key
	}
	m.first = ""
	if key == "g" && pressed == key {
		m.first = key
		return nil
	}
	for _, b := range list {
		if b.has(pressed) {
			m.note = ""
			return b.does(m)
		}
	}
	return nil
}

// has reports whether a key is one of the binding. A key of two, such as g n, is the only one.
func (b binding) has(key string) bool {
	return b.keys == key || !strings.HasPrefix(b.keys, "g ") && slices.Contains(strings.Fields(b.keys), key)
}

// back closes what is open.
func (m *model) back() { m.show(opened{}) }

// quit closes the screen, after a question if this process conducts the run.
func (m *model) quit() tea.Cmd {
	if !m.opt.Conducts {
		return tea.Quit
	}
	m.ask = &question{text: "Close the screen? The run continues here and prints lines.", yes: func(*model, string) tea.Cmd { return tea.Quit }}
	return nil
}

func (m *model) startFind() {
	m.ask = &question{text: "Find: ", typed: true, free: true, yes: func(m *model, text string) tea.Cmd {
		m.find = strings.TrimSpace(text)
		return nil
	}}
}

// hints returns the most useful keys in one line.
func (m *model) hints() string {
	if m.first != "" {
		var parts []string
		for _, p := range pages() {
			parts = append(parts, p.key+" "+string(p.page))
		}
		return "g …  " + strings.Join(parts, "  ")
	}
	var parts []string
	for _, b := range m.bindings() {
		key, _, _ := strings.Cut(b.keys, " ")
		switch key {
		case "home", "end", "ctrl+l", ".", "k", "up", "pgup", "pgdown", "ctrl+c", "?", "q":
			continue
		}
		word, _, _ := strings.Cut(b.says, ":")
		parts = append(parts, key+" "+strings.ToLower(word[:1])+word[1:])
	}
	parts = append([]string{"? help", "q quit"}, parts...)
	if m.open == (opened{}) {
		parts = append(parts, "g + letter: page")
	}
	return strings.Join(parts, "  ")
}

// helpLines lists all keys.
func (m *model) helpLines() []string {
	list := []string{paint(bold, " Keys"), ""}
	for _, b := range append(m.bindings(), menuKeys()...) {
		if b.says == "" {
			continue
		}
		key := b.keys
		if !strings.HasPrefix(key, "g ") {
			key = strings.Join(strings.Fields(key), ", ")
		}
		list = append(list, " "+column(key, 22)+" "+b.says)
	}
	return append(list, "", paint(dim, " Pages and answers have the same keys on the dashboard: lockkeeper login"))
}
