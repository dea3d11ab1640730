//go:build ui

package ui_test

import (
	"fmt"
	"testing"

	"lockkeeper/test/largerun"
)

// The lists of a large run can be read on a phone without horizontal scrolling. The timeline is sorted, searched and
// shown page by page.
func TestListsOfALargeRun(t *testing.T) {
	r := largerun.New(t, largerun.Options{Seed: 7, Units: 60, Calls: 300, Failures: 15, Landings: 12, Plans: 10, Topics: 3, Reviews: 2, Running: 5, Waiting: 4, Gaps: 30, Rescued: 8})
	s := &stage{T: t, Codebase: r.Codebase}
	s.serve("127.0.0.1:0")
	t.Cleanup(func() { must(t, s.server.Close()) })
	b := newTab(t, s)
	b.open("/timeline")
	first := `document.querySelector(".lanes li.lane").id`
	b.so("the lanes are sorted by name", `[...document.querySelectorAll("li.lane")].map((l) => l.querySelector(".label").title).every((name, i, all) => i === 0 || all[i - 1] <= name)`)
	byName := b.value(first)
	b.click(`nav[aria-label="Order"] a[href*="sort=cost"]`)
	b.so("the order by cost", `document.querySelector('nav[aria-label="Order"] [aria-current]').textContent.includes("cost")`)
	b.so("the most expensive work comes first", `[...document.querySelectorAll("li.lane .sums")].map((l) => +(l.textContent.match(/\$([0-9.]+)/)?.[1] ?? 0)).every((usd, i, all) => i === 0 || all[i - 1] >= usd)`)
	if b.value(first) == byName {
		t.Error("the first lane is the same by name and by cost")
	}
	b.so("activities have patterns", `["hatched", "striped"].every((id) => document.getElementById(id)) && document.querySelectorAll(".legend svg").length === 8`)
	b.picture("timeline-large")
	for _, page := range []string{"/timeline?sort=waited", "/items", "/items?status=queued", "/locks", "/locks?internal=1", "/audit", "/board", "/run", "/nowhere"} {
		b.sized(390, 844, false)
		b.open(page)
		if wide := b.value(`String(document.documentElement.scrollWidth)`); wide != "390" {
			t.Errorf("%s is %s px wide on a phone of 390 px", page, wide)
		}
		if same := b.value(`(() => { const ids = [...document.querySelectorAll("[id]")].map((e) => e.id); return ids.find((id, i) => ids.indexOf(id) !== i) ?? ""; })()`); same != "" {
			t.Errorf("%s has the id %s twice", page, same)
		}
		b.picture(fmt.Sprintf("large-phone-%x", page))
	}
	b.sees("main", "no page has the address /nowhere")
}
