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

// patience is the time limit for anything that a person waits for, on a busy machine.
const patience = 5 * time.Minute

// A tab is a page of a browser.
type tab struct {
	*testing.T
	ctx context.Context
}

// newTab starts a browser that is logged in.
func newTab(t *testing.T, s *stage) *tab {
	t.Helper()
	link, err := s.server.LoginLink(t.Context())
	must(t, err)
	return newTabAt(t, link)
}

// newTabAt starts a browser that logs in with a link.
func newTabAt(t *testing.T, link string) *tab {
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
	must(t, chromedp.Do(ctx, chromedp.Navigate(link))) // the first action starts the browser, which ends with its context
	b.sees("#heading", "Now")
	if at := b.value("location.href"); strings.Contains(at, link[strings.LastIndexAny(link, "=#")+1:]) {
		t.Errorf("the secret is still in the address: %s", at)
	}
	return b
}

// another opens a further tab of the browser.
func (b *tab) another(address string) *tab {
	b.Helper()
	origin := b.value("location.origin")
	ctx, end := chromedp.NewContext(b.ctx)
	b.Cleanup(end)
	next := &tab{T: b.T, ctx: ctx}
	must(b.T, chromedp.Do(ctx, chromedp.Navigate(origin+address)))
	next.so("live", `document.getElementById("live")?.dataset.state === "live"`)
	return next
}

// do runs actions within the time limit.
func (b *tab) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	for _, a := range actions {
		get(b, what, a)
	}
}

// get is do for an action with a result.
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

// value returns the value of an expression as text.
func (b *tab) value(expression string) string {
	b.Helper()
	return get(b, expression, chromedp.Evaluate[string]("String("+expression+")"))
}

// so waits until an expression is true in the page, or in the page that it navigates to.
func (b *tab) so(what, expression string) {
	b.Helper()
	poll := chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingTimeout(patience), chromedp.WithPollingInterval(50*time.Millisecond))
	b.do(what, func(ctx context.Context, t *chromedp.Target) (none chromedp.Void, err error) {
		for {
			none, err = poll(ctx, t)
			gone := err != nil && (strings.Contains(err.Error(), "Cannot find context") || strings.Contains(err.Error(), "navigated"))
			if !gone || ctx.Err() != nil { // the page is gone, so another one follows
				return none, err
			}
		}
	})
}

// sees waits until a part of the page contains words.
func (b *tab) sees(part, words string) {
	b.Helper()
	b.so("seeing "+strconv.Quote(words)+" in "+part, fmt.Sprintf("[...document.querySelectorAll(%q)].some((e) => e.textContent.includes(%q))", part, words))
}

// misses waits until a part of the page no longer contains words.
func (b *tab) misses(part, words string) {
	b.Helper()
	b.so("no longer seeing "+strconv.Quote(words), fmt.Sprintf("![...document.querySelectorAll(%q)].some((e) => e.textContent.includes(%q))", part, words))
}

// has reports whether the page shows an element now.
func (b *tab) has(selector string) bool {
	b.Helper()
	return b.value(fmt.Sprintf("[...document.querySelectorAll(%q)].some((e) => e.getClientRects().length > 0)", selector)) == "true"
}

// keys presses keys, one after the other.
func (b *tab) keys(keys string) {
	b.Helper()
	b.do("pressing "+strconv.Quote(keys), chromedp.KeyEvent(keys))
}

// tabTo presses Tab until an element has the focus.
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

// sized sets the size of the window and the color theme.
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

// picture saves a screenshot of the whole page with the test artifacts.
func (b *tab) picture(name string) {
	b.Helper()
	shot := get(b, "taking a picture", chromedp.FullScreenshot(80))
	must(b.T, os.WriteFile(filepath.Join(b.ArtifactDir(), name+".jpg"), shot, 0o644))
}
