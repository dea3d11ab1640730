//go:build ui

package ui_test

import (
	"context"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"lockkeeper"
	"lockkeeper/internal/flow/conduct"
)

// A person reads the exact prompt and the answer of a call, and copies each with one click.
func TestCopyCall(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	s := newStage(t)
	b := newTab(t, s)
	_, err := s.Runs.Start(ctx, conduct.Options{Flow: "controllers", Only: []string{"blog/posts"}, By: lockkeeper.Actor{Name: "ada", Kind: lockkeeper.ActorPerson}})
	must(t, err)
	s.until(ctx, "the run to wait for people", func() bool { return !s.Runs.Now().Active })
	b.open("/item/controllers%2Fblog%252Fposts%2Fanalyze")
	b.click(aCall)
	b.sees("#prompt", "# analyze blog/posts")
	b.sees("#answer", `"research_topics"`)
	b.copies("prompt")
	// A browser denies the clipboard to a page from an address that it does not trust.
	b.do("denying the clipboard", evaluate(`navigator.clipboard.writeText = () => Promise.reject(new Error("denied")); undefined`))
	b.copies("answer")
}

// copies presses the button that copies an element, and pastes the text into a field.
func (b *tab) copies(id string) {
	b.Helper()
	button := `[data-copy="` + id + `"]`
	b.click(button)
	b.sees(button, "Copied")
	b.do("adding a field", evaluate(`document.getElementById("pasted")?.remove(); document.body.append(Object.assign(document.createElement("textarea"), {id: "pasted"})); document.getElementById("pasted").focus()`))
	b.do("pasting", func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: "v", Commands: []string{"paste"}})
		return chromedp.Void{}, err
	})
	b.so("the text of "+id+" in the field", `document.getElementById("pasted").value.trim().length > 100 && document.getElementById("pasted").value === document.getElementById("`+id+`").textContent`)
}
