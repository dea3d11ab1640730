package top

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"lockkeeper"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
	"lockkeeper/sched"
)

// recorder keeps what a model causes.
type recorder struct {
	wanted      wants
	interrupted int
	acts        []string
}

func (r *recorder) want(w wants, _ bool) { r.wanted = w }
func (r *recorder) interrupt()           { r.interrupted++ }
func (r *recorder) do(act string, _ func(context.Context) (string, error)) {
	r.acts = append(r.acts, act)
}
func (r *recorder) decider(context.Context, string) (*acts.Decider, error) {
	return nil, errors.New("not here")
}

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

const hostile = "evil\x1b[2J\x1b]0;title\x07\u202Etxt 宽字符"

// testModel returns a model of 100 by 30 that shows a run with hostile texts.
func testModel(o Options) (*model, *recorder) {
	r := &recorder{}
	o.IO = &term.IO{Now: func() time.Time { return noon }}
	m := newModel(r, o)
	m.Update(tea.WindowSizeMsg{Width: 100, Height: 30})
	m.Update(facts{of: wants{page: nowPage}, now: testNow()})
	return m, r
}

func testNow() *view.Now {
	began := noon.Add(-time.Hour)
	n := &view.Now{Run: view.RunLine{State: view.RunActive, Flow: "controllers", Units: 300, Complete: 12, Failed: 3, Began: began}, Cost: view.Cost{USD: 12.3, BudgetUSD: 50, TotalUSD: 31}, Slots: []view.Slots{{Pool: "claude", Taken: 2, Limit: 12}},
		Needs: view.Needs{Total: 2, Kinds: []view.NeedsKind{{Kind: progress.PlanKind, Count: 2, First: planRef("b")}}, Oldest: began},
		Stuck: []view.Stuck{{Kind: view.StuckBlocked, Name: hostile, Item: "j9", Since: began}}}
	n.Cockpit.Lanes = []view.SlotLane{
		{ID: "agent-1", Pool: "claude", Work: &view.LaneWork{Item: "j1", Name: "blog/posts", Phase: "apply", State: "running", Since: began, Line: hostile}},
		{ID: "agent-2", Pool: "claude", Work: &view.LaneWork{Item: "j2", Name: hostile, Phase: "test", State: "running", Since: began}},
		{ID: "agent-3", Pool: "claude", Free: &view.FreeSlot{Text: "nothing is ready"}}, {ID: "agent-4", Pool: "claude", Free: &view.FreeSlot{Text: "nothing is ready"}}}
	n.Cockpit.Causes = []conduct.Cause{{ID: "c1", Title: "TestLogin fails " + hostile, Lines: []string{hostile}, Failures: []run.Failure{{Item: "j5"}, {Item: "j6"}}, First: began, Last: began}}
	return n
}

func planRef(unit string) progress.Ref { return progress.Ref{Kind: progress.PlanKind, Unit: unit} }

func (m *model) keys(keys ...string) (cmds []tea.Cmd) {
	for _, key := range keys {
		msg := tea.KeyPressMsg{Text: key, Code: []rune(key)[0]}
		switch key {
		case "enter":
			msg = tea.KeyPressMsg{Code: tea.KeyEnter}
		case "esc":
			msg = tea.KeyPressMsg{Code: tea.KeyEscape}
		case "ctrl+c":
			msg = tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}
		}
		_, cmd := m.Update(msg)
		cmds = append(cmds, cmd)
	}
	return cmds
}

func (m *model) shown() string { return ansi.Strip(strings.Join(m.draw(), "\n")) }

func wantText(t *testing.T, m *model, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(m.shown(), text) {
			t.Errorf("the screen does not show %q:\n%s", text, m.shown())
		}
	}
}

func decisions() *view.Decisions {
	q := &view.Decisions{Flow: "controllers"}
	for _, unit := range []string{"a", "b", "c"} {
		q.Open = append(q.Open, view.OpenDecision{Weighed: acts.Weighed{Decision: progress.Decision{Ref: planRef(unit), Title: "two to approve", Version: "v-" + unit}}})
	}
	return q
}

// Every page fits every size, and no untrusted text reaches the terminal as it is.
func TestEverySizeFits(t *testing.T) {
	m, _ := testModel(Options{})
	m.seen.decisions = decisions()
	m.seen.item = &view.Item{State: "running", Why: sched.Explanation{Item: lockkeeper.Item{ID: "j1"}}, Waits: []view.Wait{{Text: hostile}}}
	m.log = logView{path: "x", text: strings.Repeat(hostile+"\n", 100), follows: true}
	m.seen.of.item = "j1"
	m.Update(told(hostile))
	for _, o := range []opened{{}, {item: "j1"}, {cause: "c1"}, {ref: planRef("a")}, {kept: "k"}} {
		for _, p := range pages() {
			m.page, m.open = p.page, o
			for _, size := range [][2]int{{200, 60}, {100, 30}, {60, 20}, {60, 8}, {30, 5}, {20, 4}, {5, 2}, {1, 1}, {0, 0}} {
				m.width, m.height = size[0], size[1]
				list := m.draw()
				if len(list) > max(1, m.height) {
					t.Fatalf("%v %v: %d lines", o, size, len(list))
				}
				for _, line := range list {
					if ansi.StringWidth(line) > m.width {
						t.Fatalf("%v %v: %d cells: %q", o, size, ansi.StringWidth(line), line)
					}
					if rest := styling.ReplaceAllString(line, ""); strings.ContainsAny(rest, "\x1b\x07\u202E\n\t\r") {
						t.Fatalf("%v: untrusted text in %q", o, line)
					}
				}
			}
		}
	}
}

func TestNow(t *testing.T) {
	m, r := testModel(Options{})
	wantText(t, m, "[Now]", "Decide 2", "controllers active", "12 of 300 complete", "3 failed", "$12.30 of $50.00, ≈ $31.00 in all",
		"agent-1", "blog/posts", "1h00m", "2 free", "nothing is ready", "Needs you (2)", "2 plans", "Stuck (1)", "  2 × TestLogin fails")
	m.keys("enter")
	if r.wanted.item != "j1" {
		t.Errorf("Enter on a slot reads %+v", r.wanted)
	}
	m.keys("esc", "j", "j") // to the kinds of decisions
	m.keys("enter")
	m.Update(facts{of: wants{page: decidePage}, now: testNow(), decisions: decisions()})
	if row, _ := m.current(); m.page != decidePage || row.id != decisionRow+"plan b" {
		t.Errorf("Enter on a kind selected %q", row.id)
	}
}

// The selection follows its row, and takes the next one when the row is gone.
func TestSelectionFollowsItsRow(t *testing.T) {
	m, _ := testModel(Options{})
	m.keys("g", "d")
	q := decisions()
	m.Update(facts{of: wants{page: decidePage}, now: testNow(), decisions: q})
	m.keys("j")
	at := func() string { row, _ := m.current(); return row.id }
	if at() != decisionRow+"plan b" {
		t.Fatal(at())
	}
	moved := decisions()
	moved.Open = append([]view.OpenDecision{{Weighed: acts.Weighed{Decision: progress.Decision{Ref: planRef("0")}}}}, moved.Open...)
	m.Update(facts{of: wants{page: decidePage}, now: testNow(), decisions: moved})
	if at() != decisionRow+"plan b" {
		t.Errorf("a new row moved the selection to %s", at())
	}
	moved = decisions()
	moved.Open = append(moved.Open[:1], moved.Open[2])
	m.Update(facts{of: wants{page: decidePage}, now: testNow(), decisions: moved})
	if at() != decisionRow+"plan c" && at() != decisionRow+"plan a" {
		t.Errorf("after its row, %s is selected", at())
	}
}

// An answer follows a confirmation, and every other key cancels it.
func TestAnswersAreConfirmed(t *testing.T) {
	m, r := testModel(Options{})
	m.keys("g", "d")
	m.Update(facts{of: wants{page: decidePage}, now: testNow(), decisions: decisions()})
	m.keys("a")
	wantText(t, m, "approve: the batches may be applied? [y/N]", "plan a")
	if m.keys("a"); len(r.acts) > 0 || m.ask != nil {
		t.Errorf("another key answered: %v", r.acts)
	}
	m.keys("a", "y")
	if len(r.acts) != 1 || len(m.given) != 1 || m.given[0] != planRef("a") {
		t.Errorf("it did %v to %v", r.acts, m.given)
	}
	m.Update(answered{err: errors.New("plan a changed since: " + hostile)})
	wantText(t, m, "plan a changed since")
}

// An answer that needs a note asks for it.
func TestNotesAreTyped(t *testing.T) {
	m, r := testModel(Options{})
	ref := progress.Ref{Kind: progress.ReviewKind, Unit: "a", Batch: "b1"}
	m.turn(decidePage)
	m.Update(facts{of: wants{page: decidePage}, now: testNow(), decisions: &view.Decisions{Open: []view.OpenDecision{{Weighed: acts.Weighed{Decision: progress.Decision{Ref: ref}}}}}})
	m.keys("b", "enter")
	if len(r.acts) > 0 {
		t.Error("an empty note was taken")
	}
	m.keys("q", "u", "i", "t")
	wantText(t, m, "return, what must change: quit")
	m.Update(tea.PasteMsg{Content: " it\nnow"})
	if m.keys("enter"); len(r.acts) != 1 {
		t.Errorf("it did %v", r.acts)
	}
}

func TestFailuresOfACause(t *testing.T) {
	m, r := testModel(Options{})
	m.keys("G", "r")
	wantText(t, m, "Retry 2 failures? [y/N]")
	if m.keys("y"); len(r.acts) != 1 {
		t.Errorf("it did %v", r.acts)
	}
	m.keys("enter")
	wantText(t, m, "TestLogin fails", "What failed")
}

// A screen of this process's run closes only after a question. Ctrl-C never closes it.
func TestClosingTheScreenOfARun(t *testing.T) {
	m, r := testModel(Options{Conducts: true})
	if cmd := m.keys("q")[0]; cmd != nil {
		t.Fatal("q closes the screen at once")
	}
	wantText(t, m, "Close the screen? The run continues here and prints lines. [y/N]")
	if cmds := m.keys("x", "q", "ctrl+c"); r.interrupted != 1 || cmds[2] != nil {
		t.Errorf("Ctrl-C came %d times", r.interrupted)
	}
	if cmd := m.keys("y")[0]; cmd == nil || cmd() != (tea.QuitMsg{}) {
		t.Error("y does not close the screen")
	}
	m, _ = testModel(Options{})
	if cmd := m.keys("q")[0]; cmd == nil {
		t.Error("q does not close the screen of another process's run")
	}
}

// A log is followed as it grows; another log replaces it.
func TestLogGrows(t *testing.T) {
	l := logView{follows: true}
	take := func(from int64, log *view.Log) { l.take(facts{of: wants{from: from}, log: log}) }
	take(-1, &view.Log{Path: "a", Text: "cd", From: 2, Next: 4, Size: 4})
	take(4, &view.Log{Path: "a", Text: "ef", From: 4, Next: 6, Size: 6})
	take(4, &view.Log{Path: "a", Text: "ef", From: 4, Next: 6, Size: 6}) // read twice
	l.older = true
	take(l.from(), &view.Log{Path: "a", Text: "abcdef", From: 0, Next: 6, Size: 6})
	if l.text != "abcdef" || l.begin != 0 || l.next != 6 || l.older {
		t.Errorf("%+v", l)
	}
	take(6, &view.Log{Path: "b", Text: "", From: 0, Next: 0, Size: 9})
	if l.from() != -1 {
		t.Errorf("another log is read from %d", l.from())
	}
	take(-1, &view.Log{Path: "b", Text: "new", From: 0, Next: 3, Size: 3})
	if l.text != "new" || !l.follows {
		t.Errorf("%+v", l)
	}
}

func TestFind(t *testing.T) {
	m, _ := testModel(Options{})
	m.keys("g", "d")
	m.Update(facts{of: wants{page: decidePage}, now: testNow(), decisions: decisions()})
	m.keys("/", "c", "enter")
	if rows := m.rows(); len(rows) != 2 || rows[1].id != decisionRow+"plan c" {
		t.Errorf("it lists %v", rows)
	}
	m.keys("esc")
	if len(m.rows()) != 4 {
		t.Error("Escape does not list everything again")
	}
	m.keys("?")
	wantText(t, m, "approve: the batches may be applied", "g n")
}
