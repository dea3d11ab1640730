//go:build ui

package ui_test

import (
	"testing"

	"lockkeeper/test/largerun"
)

// The page of an item shows the log of its call while it grows. It follows the end, and keeps the position of a person
// who has scrolled up.
func TestLogOfAnItemGrows(t *testing.T) {
	r := largerun.New(t, largerun.Options{Units: 12, Calls: 20, Failures: -1, Landings: -1, Plans: -1, Topics: -1, Reviews: -1, Waiting: -1, Gaps: -1, Rescued: -1, Running: 1})
	s := &stage{T: t, Codebase: r.Codebase}
	s.serve("127.0.0.1:0")
	t.Cleanup(func() { must(t, s.server.Close()) })
	for range 400 {
		r.Change()
	}
	b := newTab(t, s)
	b.open("/item/" + r.RunningItem())
	b.so("the end of the log", `(() => { const log = document.getElementById("log"); return log.scrollTop > 0 && log.scrollTop + log.clientHeight >= log.scrollHeight - 24; })()`)
	const grows = `document.getElementById("log").textContent.length > window.before`
	const before = `window.before = document.getElementById("log").textContent.length`
	more := func() {
		b.do("noting the length", evaluate(before))
		for range 40 {
			r.Change()
		}
		b.so("more of the log", grows)
	}
	more()
	b.so("the new end of the log", `(() => { const log = document.getElementById("log"); return log.scrollTop + log.clientHeight >= log.scrollHeight - 24; })()`)
	b.do("scrolling up", evaluate(`document.getElementById("log").scrollTop = 20`))
	more()
	b.so("the same position", `document.getElementById("log").scrollTop === 20`)
	b.so("the call that runs, with a link", `!!document.querySelector('#calls') && !!document.querySelector('td[data-is="Ended"] .chip, th .chip.run') && !!document.querySelector('a[href^="/call/"]')`)
}
