//go:build ui

package ui_test

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"lockkeeper/internal/surface/access"
	"lockkeeper/test/largerun"
)

// While 255 units change all the time, a tab costs little of the network and the processors, and
// changes only the rows that changed.
func TestLight(t *testing.T) {
	const (
		watched   = 10 * time.Second
		mostBytes = 20_000 // per second
		mostTime  = 0.08   // of a processor, for the page and the server; they aim at 0.04
	)
	r := largerun.New(t, largerun.Options{Units: 260, Calls: 1_500, Failures: -1, Landings: -1, Plans: -1, Topics: -1, Reviews: -1, Waiting: -1, Gaps: -1, Rescued: -1, Running: 255})
	address, end := r.Serve(t, "127.0.0.1:0")
	defer end()
	b := newTabAt(t, loginLink(t, r, address))
	b.open("/board")
	b.do("marking the rows", evaluate(`document.querySelectorAll("tr[id]").forEach((row) => { row.sameAsBefore = true; })`))
	shown := b.value(`document.querySelector("tr[id]").textContent`)
	r.Change()
	b.so("a change of a row", fmt.Sprintf(`document.querySelector("tr[id]").textContent !== %q`, shown))
	if rows := b.value(`[...document.querySelectorAll("tr[id]")].filter((row) => !row.sameAsBefore).length`); rows != "0" {
		t.Errorf("%s rows were replaced", rows)
	}

	b.do("forgetting the past", evaluate(`performance.clearResourceTimings()`))
	began, before := time.Now(), costs(t)
	changes := 0
	for ; time.Since(began) < watched; time.Sleep(200 * time.Millisecond) {
		r.Change()
		changes++
	}
	seconds := time.Since(began).Seconds()
	used := (costs(t) - before).Seconds() / seconds
	sent, err := strconv.ParseFloat(b.value(`performance.getEntriesByType("resource").reduce((n, e) => n + e.transferSize, 0)`), 64)
	must(t, err)
	asked := b.value(`performance.getEntriesByType("resource").length`)
	t.Logf("%d changes of 255 units in %.0f s: %s requests, %.1f kB/s, %.1f %% of a processor", changes, seconds, asked, sent/seconds/1e3, used*100)
	if sent/seconds > mostBytes || used > mostTime || asked == "0" {
		t.Errorf("too much: %.0f bytes per second, %.3f of a processor, %s requests", sent/seconds, used, asked)
	}
}

// What a person types stays while what is around it changes.
func TestTypingIsKept(t *testing.T) {
	r := largerun.New(t, largerun.Options{Units: 20, Calls: 100, Failures: 4, Landings: 4, Plans: 2, Topics: 1, Reviews: 1, Waiting: 2, Running: 4, Gaps: 4, Rescued: 1})
	s := &stage{T: t, Codebase: r.Codebase}
	s.serve("127.0.0.1:0")
	t.Cleanup(func() { must(t, s.server.Close()) })
	b := newTab(t, s)
	b.open("/item/" + r.RunningItem())
	const field = `#page form[action="/do/cancel"] input[name=reason]`
	b.click(`#page details.ask:has(form[action="/do/cancel"]) summary`)
	b.do("typing", chromedp.SendKeys(field, "it han"))
	for range 3 {
		r.Change()
		b.sees("#page", r.Progress())
	}
	b.keys("gs")
	if typed := b.value(fmt.Sprintf(`document.querySelector(%q).value + (document.activeElement === document.querySelector(%q) ? "" : ", without the cursor")`, field, field)); typed != "it hangs" {
		t.Errorf("the field has %q", typed)
	}
}

// Ten tabs of a browser share one connection for events, and each shows a change.
func TestTenTabs(t *testing.T) {
	s := newStage(t)
	b := newTab(t, s)
	b.open("/locks")
	tabs := []*tab{b}
	for range 9 {
		tabs = append(tabs, b.another("/locks"))
	}
	token := s.Token(t, "prometheus", access.Viewer)
	if n := streams(t, s, token); n != 1 {
		t.Errorf("%d connections for events", n)
	}
	g := s.hold("otter", "app/models/blog/post.rb")
	for _, each := range tabs {
		each.sees("#page", "otter")
	}
	must(t, g.Release(t.Context()))
}

// costs returns the time of processors that the servers and the pages of this process have used.
func costs(t *testing.T) (sum time.Duration) {
	t.Helper()
	const ticks = 100 // per second, on every Linux
	processes, err := os.ReadDir("/proc")
	must(t, err)
	above, ours := map[int]int{}, map[int]time.Duration{}
	for _, p := range processes {
		pid, err := strconv.Atoi(p.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + p.Name() + "/stat")
		command, gone := os.ReadFile("/proc/" + p.Name() + "/cmdline")
		if err != nil || gone != nil {
			continue // the process has ended
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if above[pid], err = strconv.Atoi(fields[1]); err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(command, []byte("--type=renderer")) || bytes.Contains(command, []byte("\x00serve\x00")) {
			user, err := strconv.Atoi(fields[11])
			must(t, err)
			system, err := strconv.Atoi(fields[12])
			must(t, err)
			ours[pid] = time.Duration(user+system) * time.Second / ticks
		}
	}
	for pid, used := range ours {
		for at := pid; at > 1; at = above[at] {
			if at == os.Getpid() {
				sum += used
			}
		}
	}
	return sum
}
