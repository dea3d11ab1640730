package top

import (
	"context"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/acts"
)

// effects is what a model can cause outside of itself. A *Screen implements it.
type effects interface {
	want(w wants, now bool) // now: reads it at once
	interrupt()
	do(act string, do func(context.Context) (string, error))
	decider(ctx context.Context, flow string) (*acts.Decider, error)
}

// told is a line of news of the run.
type told string

// answered is the end of an act: what it says, or why it was refused.
type answered struct {
	said string
	err  error
}

// tick redraws the screen, because durations change.
type tick struct{}

// A model is the state of the screen. Only its program changes it.
type model struct {
	effects
	opt    Options
	width  int
	height int
	page   page
	marks  map[page]*mark // the selected row of each page
	seen   facts          // what was read last
	open   opened         // what is open above the page
	scroll int            // the first line of it that is shown
	log    logView
	first  string // the first of two keys in a row
	help   bool
	ask    *question      // the question that keys answer now; nil: none
	find   string         // only rows with this text are listed
	note   string         // what the last act said
	failed bool           // the note is about a refusal
	news   []string       // the last lines of news
	given  []progress.Ref // what the last answer decided
	ticks  bool           // a tick is under way
}

// A mark is the selected row of a page, by its id and its place.
type mark struct {
	id string
	at int
}

// opened is what is open above a page. The zero value is nothing.
type opened struct {
	item  string // an item with its log
	ref   progress.Ref
	kept  string // a kept change
	cause string // a cause of failures
}

func newModel(e effects, o Options) *model {
	m := &model{effects: e, opt: o, width: 80, height: 24, marks: map[page]*mark{}, page: nowPage}
	for _, p := range pages() {
		if p.key == o.Page {
			m.page = p.page
		}
	}
	m.wantIt()
	return m
}

// newsKept is how many lines of news are kept for the page Now.
const newsKept = 50

func (m *model) Init() tea.Cmd { return nil }

// Update takes a message of the program.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case facts:
		m.take(msg)
		return m, m.tick()
	case tick:
		m.ticks = false
		return m, m.tick()
	case told:
		m.news = append(m.news, safe(string(msg)))
		m.news = m.news[max(0, len(m.news)-newsKept):]
	case answered:
		m.note, m.failed = oneLine(msg.said), msg.err != nil
		if msg.err != nil {
			m.note = oneLine(msg.err.Error())
		}
	case tea.PasteMsg:
		if m.ask != nil {
			m.ask.paste(msg.Content)
		}
	case tea.KeyPressMsg:
		return m, m.press(msg)
	}
	return m, nil
}

// tick asks for the next tick while something works.
func (m *model) tick() tea.Cmd {
	if m.ticks || m.seen.now == nil || m.seen.interval() != whileWorking {
		return nil
	}
	m.ticks = true
	return tea.Tick(time.Second, func(time.Time) tea.Msg { return tick{} })
}

// take replaces what was read, unless the person wants something else by now.
func (m *model) take(f facts) {
	if f.err != nil {
		m.note, m.failed = oneLine(f.err.Error()), true
		if f.now == nil {
			return
		}
	} else if m.seen.err != nil {
		m.note, m.failed = "", false
	}
	if f.of.page != m.page { // only what each page shows is current
		m.seen.now = f.now
		return
	}
	m.seen = f
	if m.open.item != "" && f.of.item == m.open.item {
		m.log.take(f)
		m.want(m.wants(), false)
	}
}

// wantIt reads what is shown.
func (m *model) wantIt() {
	m.want(m.wants(), true)
}

func (m *model) wants() wants {
	return wants{page: m.page, item: m.open.item, ref: m.open.ref, kept: m.open.kept, from: m.log.from()}
}

// show opens something above the page.
func (m *model) show(o opened) {
	m.open, m.scroll, m.log, m.find = o, 0, logView{follows: true}, ""
	m.wantIt()
}

// turn opens a page.
func (m *model) turn(p page) {
	m.page, m.find = p, ""
	m.seen = facts{now: m.seen.now}
	m.show(opened{})
}

// clock returns the time.
func (m *model) clock() time.Time { return m.opt.IO.Now() }

// rows returns the rows of the page that match what the person looks for.
func (m *model) rows() []row {
	list := m.all()
	if m.find == "" {
		return list
	}
	return slices.DeleteFunc(list, func(r row) bool { return r.id != "" && !r.has(m.find) })
}

// mark returns the selection of the page. It follows its row if that moved, and stays at its place
// if the row is gone.
func (m *model) mark(rows []row) (at int, found bool) {
	k := m.marks[m.page]
	if k == nil {
		k = &mark{}
		m.marks[m.page] = k
	}
	first := -1
	last := -1
	for i, r := range rows {
		switch {
		case r.id == "":
			continue
		case r.id == k.id:
			k.at = i
			return i, true
		case first < 0:
			first = i
		}
		if i <= k.at {
			last = i
		}
	}
	if last < 0 {
		last = first
	}
	if last >= 0 {
		k.id, k.at = rows[last].id, last
	}
	return last, last >= 0
}

// move selects another row: by steps over those that can be selected.
func (m *model) move(by int) {
	rows := m.rows()
	at, found := m.mark(rows)
	if !found {
		return
	}
	step := 1
	if by < 0 {
		step = -1
	}
	for i := at + step; i >= 0 && i < len(rows) && by != 0; i += step {
		if rows[i].id != "" {
			at, by = i, by-step
		}
	}
	*m.marks[m.page] = mark{rows[at].id, at}
}

// current returns the selected row.
func (m *model) current() (row, bool) {
	rows := m.rows()
	at, found := m.mark(rows)
	if !found {
		return row{}, false
	}
	return rows[at], true
}
