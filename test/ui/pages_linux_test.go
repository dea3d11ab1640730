//go:build ui

package ui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"lockkeeper/internal/flow/conduct"

	"github.com/chromedp/chromedp"

	"lockkeeper"
)

func evaluate(expression string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](expression)
}

// faults runs the accessibility checker on the current page.
func (b *tab) faults(axe string) (list []string) {
	b.Helper()
	const check = `axe.run(document, {resultTypes: ["violations"]}).then((r) => JSON.stringify(r.violations.map((v) => ({id: v.id, impact: v.impact, help: v.help, where: v.nodes.slice(0, 3).map((n) => n.target.join(" ") + " " + (n.any[0]?.message ?? ""))}))))`
	b.do("loading the checker", evaluate(axe+"; undefined"))
	found := get(b, "checking the page", chromedp.Evaluate[string](check, chromedp.EvalAwaitPromise))
	var faults []struct {
		ID, Impact, Help string
		Where            []string
	}
	must(b.T, json.Unmarshal([]byte(found), &faults))
	for _, f := range faults {
		if f.Impact == "serious" || f.Impact == "critical" {
			list = append(list, fmt.Sprintf("%s (%s): %s: %s", f.ID, f.Impact, f.Help, strings.Join(f.Where, "; ")))
		}
	}
	return list
}

// anItem selects a link to the page of an item.
const anItem = `#page a[href^="/item/"]`

// aCall selects a link to the page of an agent's call.
const aCall = `#page a[href*="/call/"]`

// Every page is legible in both themes and on a phone, and has no serious accessibility fault.
// This holds while a run waits for decisions and when it is done.
// shows: PL-94 SW-84
func TestPages(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	axe, err := os.ReadFile(os.Getenv("LOCKKEEPER_TEST_AXE"))
	must(t, err)
	s := newStage(t)
	b := newTab(t, s)
	pages := map[string]string{"now": "/", "decide": "/decide", "board": "/board", "items": "/items", "locks": "/locks", "timeline": "/timeline",
		"run": "/run", "rescue": "/rescue", "nodes": "/nodes", "audit": "/audit"}
	look := func(when string) {
		b.open("/items")
		if b.has(anItem) { // the newest item
			pages["item"] = b.value(`document.querySelector('` + anItem + `').getAttribute("href")`)
			b.open(pages["item"])
			if b.has(aCall) {
				pages["call"] = b.value(`document.querySelector('` + aCall + `').getAttribute("href")`)
			}
		}
		for name, address := range pages {
			b.open(address)
			for _, size := range []struct {
				name          string
				width, height int64
			}{{"desk", 1280, 900}, {"phone", 390, 844}} {
				for _, dark := range []bool{false, true} {
					theme := "light"
					if dark {
						theme = "dark"
					}
					b.sized(size.width, size.height, dark)
					at := fmt.Sprintf("%s-%s-%s-%s", when, name, size.name, theme)
					b.picture(at)
					for _, fault := range b.faults(string(axe)) {
						t.Errorf("%s: %s", at, fault)
					}
					if over := b.value("document.documentElement.scrollWidth - document.documentElement.clientWidth"); over != "0" {
						t.Errorf("%s: it is %s pixels wider than the window", at, over)
					}
				}
			}
		}
	}
	look("empty")
	_, err = s.Runs.Start(ctx, conduct.Options{Flow: "controllers", By: lockkeeper.Actor{Name: "ada", Kind: lockkeeper.ActorPerson}})
	must(t, err)
	s.until(ctx, "the run to wait for people", func() bool { return !s.Runs.Now().Active })
	g := s.hold("otter", "app/models/blog/post.rb")
	look("asking")
	must(t, g.Release(ctx))
	// The scripted agents cannot implement low-impact items, so those stay out.
	_, err = s.Runs.Start(ctx, conduct.Options{Auto: "impact>=medium,topics=reject,reviews", By: lockkeeper.Actor{Name: "ada", Kind: lockkeeper.ActorPerson}})
	must(t, err)
	s.until(ctx, "the run to end", func() bool { return !s.Runs.Now().Active })
	if out := s.Runs.Now().Outcome; out == nil || out.Failed != 0 || out.Complete != len(s.Runs.Now().Units) {
		t.Fatalf("when all is done, these need attention: %+v", out)
	}
	look("done")
	b.sized(1280, 900, false)
	b.open("/items")
	b.click(anItem)
	b.so("the page of an item", `location.pathname.startsWith("/item/")`)
}
