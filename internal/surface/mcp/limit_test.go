package mcp_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"lockkeeper/internal/surface/access"
	"lockkeeper/internal/surface/mcp"
)

// Abandoned sessions, such as those that Claude Code leaves after every run, lock no other token out. Once they
// hold nothing, they do not block their own token either.
func TestLeftBehind(t *testing.T) {
	s := newScene(t)
	now := time.Now()
	server := mcp.New(mcp.Options{App: s.App, Now: func() time.Time { return now }})
	defer func() { must(t, server.Close()) }()
	people := map[string]access.Person{}
	for _, name := range []string{"one", "two"} {
		who, err := access.Open(t.TempDir()).Member(t.Context(), name, access.Agent)
		must(t, err)
		people[name] = who
	}
	ask := func(who, id, method, params string) (int, string) {
		r := httptest.NewRequestWithContext(access.With(t.Context(), people[who]), http.MethodPost, "/mcp",
			strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`))
		for key, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer " + who, "Mcp-Session-Id": id} {
			if value != "" {
				r.Header.Set(key, value)
			}
		}
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		return w.Code, w.Header().Get("Mcp-Session-Id")
	}
	begin := func(who string) (int, string) {
		return ask(who, "", "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"left","version":"1"}}`)
	}
	speak := func(who, id string) int {
		status, _ := ask(who, id, "ping", "{}")
		return status
	}
	_, others := begin("two")
	now = now.Add(time.Minute)
	var left []string
	for {
		status, id := begin("one")
		if status == http.StatusServiceUnavailable {
			break
		}
		if left = append(left, id); status != http.StatusOK || id == "" || len(left) > 5_000 {
			t.Fatalf("session %d: %d %q", len(left), status, id)
		}
	}
	if status, _ := begin("two"); status != http.StatusOK {
		t.Errorf("one token has every place: another is told %d after %d", status, len(left))
	}
	now = now.Add(14 * time.Minute)
	if status := speak("one", left[0]); status != http.StatusOK {
		t.Errorf("a session that is there: %d", status)
	}
	if status := speak("two", left[1]); status != http.StatusForbidden {
		t.Errorf("with another's session: %d", status)
	}
	if status, _ := begin("one"); status != http.StatusServiceUnavailable {
		t.Errorf("while all may hold something: %d", status)
	}
	now = now.Add(2 * time.Minute)
	if status, _ := begin("one"); status != http.StatusOK {
		t.Errorf("when most hold nothing: %d", status)
	}
	gone := 0
	for _, id := range left {
		if speak("one", id) == http.StatusNotFound {
			gone++
		}
	}
	if gone != 1 || speak("one", left[0]) != http.StatusOK || speak("two", others) != http.StatusOK {
		t.Errorf("%d sessions ended for one; the one that spoke: %d, another's: %d", gone, speak("one", left[0]), speak("two", others))
	}
}
