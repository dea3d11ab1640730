//go:build ui

package ui_test

import (
	"fmt"
	"os"
	"testing"

	"lockkeeper/internal/flow/progress"
	"lockkeeper/test/largerun"
)

// An operator counts the actions of a person for one task: clicks and keys.
type operator struct {
	*tab
	actions int
}

// mostActions is how many actions any task may need.
const mostActions = 5

// begins starts a task at a page.
func (o *operator) begins(page string) {
	o.Helper()
	o.actions = 0
	o.open(page)
}

func (o *operator) clicks(selector string) {
	o.Helper()
	o.actions++
	o.click(selector)
}

// presses presses the keys of one shortcut.
func (o *operator) presses(shortcut string) {
	o.Helper()
	o.actions++
	o.keys(shortcut)
}

// done ends a task.
func (o *operator) done(task string) {
	o.Helper()
	o.Logf("%s: %d actions", task, o.actions)
	if o.actions > mostActions {
		o.Errorf("%s: %d actions, more than %d", task, o.actions, mostActions)
	}
	o.picture("operator-" + fmt.Sprintf("%x", task))
}

// An operator of a run of 300 units does each task from the first page with at most five actions.
// The pages of such a run are legible on a desk and on a phone.
func TestOperator(t *testing.T) {
	axe, err := os.ReadFile(os.Getenv("LOCKKEEPER_TEST_AXE"))
	must(t, err)
	r := largerun.New(t, largerun.Options{})
	s := &stage{T: t, Codebase: r.Codebase}
	s.serve("127.0.0.1:0")
	t.Cleanup(func() { must(t, s.server.Close()) })
	o := &operator{tab: newTab(t, s)}

	for name, page := range map[string]string{"now": "/", "decide": "/decide?kind=plan", "items": "/items", "locks": "/locks", "timeline": "/timeline?sort=waited",
		"run": "/run", "rescue": "/rescue", "board": "/board", "audit": "/audit", "unit": "/unit/" + r.Units[0], "landing": ""} {
		if name == "landing" {
			o.open("/run")
			page = o.value(`document.querySelector('#page a[href^="/landing/"]').getAttribute("href")`)
		}
		o.open(page)
		for _, phone := range []bool{false, true} {
			if o.sized(1440, 900, phone); phone {
				o.sized(390, 844, phone)
			}
			at := fmt.Sprintf("large-%s-phone-%v", name, phone)
			o.picture(at)
			for _, fault := range o.faults(string(axe)) {
				t.Errorf("%s: %s", at, fault)
			}
			if over := o.value("document.documentElement.scrollWidth - document.documentElement.clientWidth"); over != "0" {
				t.Errorf("%s: it is %s pixels wider than the window", at, over)
			}
		}
	}
	o.sized(1440, 900, false)

	o.begins("/")
	o.presses("gt")
	o.so("the timeline", `location.pathname === "/timeline"`)
	o.clicks(`nav[aria-label="Order"] a[href*="sort=waited"]`)
	o.so("the order", `document.querySelector('nav[aria-label="Order"] [aria-current]').textContent.includes("waited")`)
	o.clicks(`li.lane a`)
	o.so("the work that waited longest", `location.pathname.startsWith("/item/")`)
	o.done("find what waited longest")

	o.begins("/")
	o.presses("gw")
	o.so("the list of work", `location.pathname === "/items"`)
	o.clicks(`#page nav a[href*="status=queued"]`)
	o.sees("#page", "lock")
	o.done("find what blocks the queue")

	o.begins("/")
	o.clicks(`section[aria-labelledby="lanes"] a[href^="/item/"]`)
	o.so("the log of the agent", `document.querySelector("#log")?.textContent.length > 0`)
	before := o.value(`document.querySelector("#log").textContent.length`)
	for range 10 {
		r.Change()
	}
	o.so("a log that grows", `document.querySelector("#log").textContent.length > `+before)
	o.done("follow an agent")

	o.begins("/")
	failed := o.value(`document.querySelector("#failed").textContent`)
	o.clicks(`.causes li:first-child details.ask summary`)
	o.clicks(`.causes li:first-child details.ask[open] button.first`)
	o.so("an answer", `document.querySelector("#said .said:not(.bad)")`)
	o.so("fewer failures", fmt.Sprintf(`document.querySelector("#failed")?.textContent !== %q`, failed))
	o.done("retry one cause")

	o.begins("/")
	o.clicks(`a.door[href*="plan"]`)
	o.so("the plans", `document.querySelector("#bulk")`)
	o.clicks(`#bulk > summary`)
	o.clicks(`#bulk button[value="approve"]`)
	o.sees("#said", "70")
	o.done("approve seventy plans")
	open, err := s.View.Decisions(t.Context(), "")
	must(t, err)
	for _, d := range open.Open {
		if d.Ref.Kind == progress.PlanKind {
			t.Errorf("%s waits", d.Ref)
		}
	}

	o.begins("/")
	o.presses("ge")
	o.so("the kept changes", `location.pathname === "/rescue"`)
	o.clicks(`.toolbar details.ask:first-of-type summary`)
	o.clicks(`.toolbar details.ask[open] button.first`)
	o.so("an answer", `document.querySelector("#said .said:not(.bad)")?.textContent.includes("landed")`)
	o.done("land what was kept")

	o.begins("/")
	o.presses("gr")
	o.so("the run", `location.pathname === "/run"`)
	o.clicks(`#page tr details.ask summary`)
	o.clicks(`#page tr details.ask[open] button.bad`)
	o.so("an answer", `document.querySelector("#said .said:not(.bad)")`)
	o.sees("#page tr .chip", "undone by")
	o.done("undo a landing")
}
