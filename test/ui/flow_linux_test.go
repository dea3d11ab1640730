//go:build ui

package ui_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"lockkeeper/internal/flow/conduct"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"lockkeeper"
)

// asked returns the reference, with its version, and the kind of the current decision on the
// page Decide. Both are empty if no decision waits.
func (b *tab) asked() (ref, kind string) {
	b.Helper()
	ref = b.value(`document.querySelector("article.gate form.answer input[name=ref]")?.value ?? ""`)
	if ref == "" {
		return "", ""
	}
	return ref, b.value(`document.querySelector("article.gate h2 .chip")?.textContent ?? ""`)
}

// decide answers all decisions until the run has ended.
func (b *tab) decide(ctx context.Context, s *stage, answer func(kind string)) (answered map[string]int) {
	b.Helper()
	answered = map[string]int{}
	for {
		ref, kind := b.asked()
		if ref != "" {
			b.so("the answer to the last act", `!document.body.classList.contains("busy")`) // keys are ignored until then
			answer(kind)
			answered[kind]++
			b.so("the next after "+ref, `document.querySelector("article.gate form.answer input[name=ref]")?.value !== `+quoted(ref))
			continue
		}
		if !s.Runs.Now().Active {
			return answered
		}
		// The page shows the next decision without a reload.
		s.until(ctx, "the run to end, or something to come up", func() bool {
			ref, _ := b.asked()
			return ref != "" || !s.Runs.Now().Active
		})
	}
}

// unwanted reports whether the current item is the one that no script implements.
func (b *tab) unwanted() bool {
	b.Helper()
	return strings.Contains(b.value(`document.querySelector("article.gate").textContent`), "single-page front end")
}

func quoted(s string) string {
	return `"` + strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), `"`, `\"`) + `"`
}

// A person without a mouse starts a run, answers all its decisions, sees what landed and undoes
// it.
// shows: PL-19 PL-25 PL-78 PL-94 GP-25
func TestFlowByKeyboard(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	s := newStage(t)
	b := newTab(t, s)
	b.keys("S") // opens the form that starts a run
	b.tabTo(`form[action="/do/start"] button`)
	b.keys(kb.Enter)
	b.sees("#said", "controllers runs")
	b.keys("gd")
	b.sees("#heading", "Decide")
	b.so("live", `document.getElementById("live").dataset.state === "live"`)
	answered := b.decide(ctx, s, func(kind string) {
		switch kind {
		case "topic":
			b.keys("p")
			b.so("typing", `document.activeElement.matches("textarea[name=text]")`)
			b.keys("Keyset pagination.")
			b.tabTo(`button[value=answer]`)
			b.keys(kb.Enter)
		case "item":
			if b.unwanted() {
				b.keys("r")
			} else {
				b.keys("t")
			}
		case "gap":
			b.keys("d")
		default: // a plan, a review
			b.keys("a")
		}
	})
	for _, kind := range []string{"topic", "item", "plan", "gap"} {
		if answered[kind] == 0 {
			t.Errorf("nothing of the kind %s was to be decided: %v", kind, answered)
		}
	}
	b.keys("gr")
	b.sees("#heading", "Run")
	b.undoFirst(s, func(undo string) {
		b.tabTo(undo)
		b.keys(kb.Enter)
	})
}

// undoFirst undoes the first landing for which the page Run offers it.
func (b *tab) undoFirst(s *stage, press func(selector string)) {
	b.Helper()
	const form = `form[action="/do/undo"]`
	b.so("something that can be undone", `document.querySelector('`+form+`') !== null`)
	paths := strings.Split(b.value(`[...document.querySelector('`+form+`').closest("tr").querySelectorAll("[data-is=What] .path")].map((e) => e.textContent).join("\n")`), "\n")
	before := s.read(paths[0])
	if b.has(`details:not([open]):has(` + form + `) > summary`) {
		press(`details:has(` + form + `) > summary`)
	}
	press(form + ` button`)
	b.sees("#said", "restored")
	if s.read(paths[0]) == before {
		b.Errorf("%s is as it was before the undo", paths[0])
	}
	b.sees("#page", "undone by")
}

// A person with a mouse starts a run of one controller, answers its decisions, sees what
// landed and undoes it.
// shows: PL-19 PL-25
func TestFlowByClicking(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	s := newStage(t)
	b := newTab(t, s)
	b.click(`summary[data-key=S]`)
	b.do("naming one controller", chromedp.SendKeys(`form[action="/do/start"] input[name=only]`, "blog/posts"))
	b.click(`form[action="/do/start"] button`)
	b.sees("#said", "controllers runs")
	b.click(`nav.pages a[href="/decide"]`)
	b.sees("#heading", "Decide")
	b.decide(ctx, s, func(kind string) {
		switch kind {
		case "topic":
			b.do("pasting", chromedp.SendKeys("#found", "Keyset pagination."))
			b.click("button[value=answer]")
		case "item":
			word := "todo"
			if b.unwanted() {
				word = "reject"
			}
			b.click("article.gate form.answer button[value=" + word + "]")
		case "gap":
			b.click("article.gate form.answer button[value=dismiss]")
		default:
			b.click("article.gate form.answer button[value=approve]")
		}
	})
	b.click(`nav.pages a[href="/run"]`)
	b.sees("#heading", "Run")
	b.undoFirst(s, b.click)
}

// Single keys move between decisions without answering, and undo the last answer.
// shows: PL-25 PL-94
func TestKeysOfDecide(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	s := newStage(t)
	b := newTab(t, s)
	_, err := s.Runs.Start(ctx, conduct.Options{Flow: "controllers", Auto: "topics=reject", By: lockkeeper.Actor{Name: "ada", Kind: lockkeeper.ActorPerson}})
	must(t, err)
	s.until(ctx, "the run to wait for people", func() bool { return !s.Runs.Now().Active })
	b.open("/decide?kind=item")
	first, _ := b.asked()
	const shown, calm = `document.querySelector("article.gate form.answer input[name=ref]")?.value`, ` && !document.body.classList.contains("busy")`
	b.keys("j")
	b.so("the next one", shown+` !== `+quoted(first)+calm)
	b.keys("k")
	b.so("the first one again", shown+` === `+quoted(first)+calm)
	for key, said := range map[string]string{"t": "will be done", "d": "is deferred"} {
		b.keys(key)
		b.sees("#said", said)
		b.so("the answer to the act", "true"+calm)
		b.keys("u")
		b.sees("#said", "open again")
		b.so("the answer to the act", "true"+calm)
		b.open("/decide?kind=item")
		b.so("the first one again", shown+` === `+quoted(first)+calm)
	}
}
