//go:build ui

package ui_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// patience is how long anything may take that a person waits for, on a machine that does
// much else.
const patience = 5 * time.Minute

// tab is a page of a browser.
type tab struct {
	*testing.T
	ctx context.Context
}

// newTab starts a browser of its own, logged in.
func newTab(t *testing.T, s *stage) *tab {
	t.Helper()
	browser := os.Getenv("LOCKKEEPER_TEST_BROWSER")
	if browser == "" {
		t.Fatal("LOCKKEEPER_TEST_BROWSER names no browser; next: make test-ui")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(browser), chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1280, 900),
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.WSURLReadTimeout(patience))
	alone, end := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(end)
	ctx, leave := chromedp.NewContext(alone)
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Log(err)
		}
		leave()
	})
	b := &tab{T: t, ctx: ctx}
	link, err := s.server.LoginLink(t.Context())
	must(t, err)
	must(t, chromedp.Do(ctx, chromedp.Navigate(link))) // the first one starts the browser, whose life is that of its context
	b.sees("#heading", "Now")
	if at := b.value("location.href"); strings.Contains(at, link[strings.LastIndexAny(link, "=#")+1:]) {
		t.Errorf("the secret is still in the address: %s", at)
	}
	return b
}

// do does something within the time that people have.
func (b *tab) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	for _, a := range actions {
		get(b, what, a)
	}
}

// get is do for what has a result.
func get[T any](b *tab, what string, a chromedp.Action[T]) T {
	b.Helper()
	ctx, done := context.WithTimeout(b.ctx, patience)
	defer done()
	got, err := chromedp.Run(ctx, a)
	if err != nil {
		look, end := context.WithTimeout(b.ctx, 5*time.Second)
		defer end()
		shown, _ := chromedp.Run(look, chromedp.Evaluate[string](`document.title + " | " + document.body.innerText`))
		b.Fatalf("%s: %v\nshown: %s", what, err, shown[:min(len(shown), 3_000)])
	}
	return got
}

func (b *tab) open(address string) {
	b.Helper()
	origin := b.value("location.origin")
	b.do("opening "+address, chromedp.Navigate(origin+address), chromedp.WaitReady("#page"))
	b.so("live", `document.getElementById("live").dataset.state === "live"`)
}

// value is what an expression is, as text.
func (b *tab) value(expression string) string {
	b.Helper()
	return get(b, expression, chromedp.Evaluate[string]("String("+expression+")"))
}

// so waits until an expression is true in the page, or in the one that it leads to.
func (b *tab) so(what, expression string) {
	b.Helper()
	poll := chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingTimeout(patience), chromedp.WithPollingInterval(50*time.Millisecond))
	b.do(what, func(ctx context.Context, t *chromedp.Target) (none chromedp.Void, err error) {
		for {
			none, err = poll(ctx, t)
			gone := err != nil && (strings.Contains(err.Error(), "Cannot find context") || strings.Contains(err.Error(), "navigated"))
			if !gone || ctx.Err() != nil { // another page comes after one that is gone
				return none, err
			}
		}
	})
}

// sees waits for words in a part of the page.
func (b *tab) sees(part, words string) {
	b.Helper()
	b.so("seeing "+strconv.Quote(words)+" in "+part, fmt.Sprintf("[...document.querySelectorAll(%q)].some((e) => e.textContent.includes(%q))", part, words))
}

// misses waits until words are gone.
func (b *tab) misses(part, words string) {
	b.Helper()
	b.so("no longer seeing "+strconv.Quote(words), fmt.Sprintf("![...document.querySelectorAll(%q)].some((e) => e.textContent.includes(%q))", part, words))
}

// has reports whether there is something now that is shown.
func (b *tab) has(selector string) bool {
	b.Helper()
	return b.value(fmt.Sprintf("[...document.querySelectorAll(%q)].some((e) => e.getClientRects().length > 0)", selector)) == "true"
}

// keys presses keys, one after the other.
func (b *tab) keys(keys string) {
	b.Helper()
	b.do("pressing "+strconv.Quote(keys), chromedp.KeyEvent(keys))
}

// tabTo goes with the tabulator to what is meant.
func (b *tab) tabTo(selector string) {
	b.Helper()
	for range 300 {
		if b.value(fmt.Sprintf("document.activeElement.matches(%q)", selector)) == "true" {
			return
		}
		b.keys(kb.Tab)
	}
	b.Fatalf("the tabulator never comes to %s", selector)
}

func (b *tab) click(selector string) {
	b.Helper()
	b.do("clicking "+selector, chromedp.ScrollIntoView(selector), chromedp.Click(selector, chromedp.NodeVisible))
}

// sized makes the window that of a phone, or of a desk, light or dark.
func (b *tab) sized(width, height int64, dark bool) {
	b.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	media := func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return chromedp.Void{}, err
	}
	b.do("sizing the window", chromedp.EmulateViewport(width, height), media)
}

// picture keeps a picture of the whole page among what the tests leave.
func (b *tab) picture(name string) {
	b.Helper()
	shot := get(b, "taking a picture", chromedp.FullScreenshot(80))
	must(b.T, os.WriteFile(filepath.Join(b.ArtifactDir(), name+".jpg"), shot, 0o644))
}
