//go:build ui

package ui_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"lockkeeper/lock"
)

// The page shows changes of holders and waiting requests at once, without a reload.
// shows: SW-84 PL-94 LM-43
func TestConflictIsSeen(t *testing.T) {
	s := newStage(t)
	b := newTab(t, s)
	b.open("/locks")
	b.do("marking the page", evaluate("window.sameAsBefore = true"))
	const file = "app/models/blog/post.rb"
	held := s.hold("otter", file)
	b.sees("#page", "otter")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	type came struct {
		g   *lock.Grant
		err error
	}
	waiter := make(chan came, 1)
	request := s.request("heron", file)
	go func() {
		g, err := s.App.Locks.Acquire(ctx, request, time.Minute)
		waiter <- came{g, err}
	}()
	b.sees("#page", "heron")
	must(t, held.Release(ctx))
	got := <-waiter
	must(t, got.err)
	b.misses("#page", "otter")
	b.sees("#page", "heron")
	must(t, got.g.Release(ctx))
	b.misses("#page", "heron")
	if b.value("window.sameAsBefore") != "true" {
		t.Error("the page was loaded again")
	}
}

// A restart of the server logs nobody out. When the server is back, the page shows what
// happened meanwhile.
func TestRestartLosesNothing(t *testing.T) {
	s := newStage(t)
	b := newTab(t, s)
	b.open("/audit")
	b.do("marking the page", evaluate("window.sameAsBefore = true"))
	address := strings.TrimPrefix(s.server.Address(), "http://")
	must(t, s.server.Close())
	b.so("being told that it is gone", `!document.getElementById("lost").hidden`)
	b.sees("#lost time b", "s ago") // in the format of all times
	b.picture("disconnected")
	must(t, s.hold("otter", "app/models/blog/post.rb").Release(t.Context()))
	s.serve(strings.TrimSuffix(address, "/"))
	b.so("being back", `document.getElementById("live").dataset.state === "live" && document.getElementById("lost").hidden`)
	b.sees("#page", "otter")
	if b.value("window.sameAsBefore") != "true" {
		t.Error("the page was loaded again")
	}
}

// Names of holders and files are shown as text, and never run.
func TestNamesAreText(t *testing.T) {
	s := newStage(t)
	b := newTab(t, s)
	const evil = `<img src=x onerror="window.harmed=1"><script>window.harmed=1</script>`
	g := s.hold(evil, "app/models/<script>window.harmed=1<script>.rb")
	for _, page := range []string{"/locks", "/audit", "/"} {
		b.open(page)
		if b.value("window.harmed") != "undefined" {
			t.Fatalf("%s ran what a name says", page)
		}
	}
	b.open("/locks")
	b.sees("#page", "onerror")
	must(t, g.Release(t.Context()))
}
