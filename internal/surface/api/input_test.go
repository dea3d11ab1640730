package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/surface/access"
	"lockkeeper/internal/surface/view"
)

// An invalid body is refused with the reason and the location of the error.
func TestBadBodies(t *testing.T) {
	s := newScene(t)
	for body, says := range map[string]string{
		`{`:                                        "not JSON",
		`{"write":["a"]`:                           "ends too early",
		`{"write":["a"]} x`:                        "more after",
		`{"write":["a"]}{}`:                        "more after",
		`[]`:                                       "an object",
		`"x"`:                                      "an object",
		`{"write":"a"}`:                            "a list",
		`{"write":[1]}`:                            "a string",
		`{"wait_seconds":"5"}`:                     "a number",
		`{"wirte":["a"]}`:                          "unknown field",
		`{"write":["app/x"],"ttl":1}`:              "unknown field",
		`{"write":[]}`:                             "no path is named",
		`{"WRITE":["app/x"]}`:                      `it is spelled \"write\"`,
		`{"write":["a"],"Write":["app/x"]}`:        `it is spelled \"write\"`,
		`{"write":["app/x"],"write":["app/y"]}`:    "given more than once",
		"{\"write\":[\"app/\xe9\"]}":               "not UTF-8",
		`{"write":["app/\ud800"]}`:                 "half of a character",
		"\x00":                                     "not JSON",
		`{"write":["app/x"]` + "\xff}":             "not JSON",
		`{"write":["app/x"],"wait_seconds":-1}`:    "from 0 to",
		`{"write":["app/x"],"wait_seconds":1e9}`:   "from 0 to",
		`{"write":["app/x"],"wait_seconds":1e300}`: "from 0 to",
		`{"write":["app/x"],"wait_seconds":18446744083}`: "from 0 to", // overflows time.Duration
		`{"write":["app/x"],"ttl_seconds":1e300}`:        "from 1 to",
		`{"write":["app/x"],"ttl_seconds":0.5}`:          "from 1 to",
		`{"write":["app/x"],"policy":"whatever"}`:        "whatever",
		`{"write":["app/x"],"holder":"a\u0000b"}`:        "holder",
	} {
		s.as(access.Agent, "POST", "/api/v1/grants", body).want(http.StatusBadRequest, "input").has(says)
	}
	for body, says := range map[string][]string{
		`{"refs":[null]}`:                      {"a reference is empty"},
		`{"refs":["item blog/posts/i1",null]}`: {"a reference is empty"},
		`{"seen":[]}`:                          {`"field":"seen"`, "it is a list and must be an object"},
		`{"notes":{}}`:                         {`"field":"notes"`, "it is an object and must be a list"},
		`{"only":3}`:                           {`"field":"only"`, "it is a number and must be true or false"},
		`{"refs":"x"}`:                         {`"field":"refs"`, "it is a string and must be a list"},
	} {
		s.as(access.Operator, "POST", "/api/v1/decide/todo", body).want(http.StatusBadRequest, "input").has(says...)
	}
	for at, body := range map[string]string{"/api/v1/decide/undo": `{"refs":[null]}`, "/api/v1/decide/items": `{"choices":[{"decision":"TODO"}]}`} {
		s.as(access.Operator, "POST", at, body).want(http.StatusBadRequest, "input").has("is empty")
	}
	for _, deep := range []string{strings.Repeat("[", 100_000), strings.Repeat(`{"a":`, 100_000)} {
		s.as(access.Agent, "POST", "/api/v1/grants", deep).want(http.StatusBadRequest, "input")
	}
	for query, says := range map[string]string{"limit=x": "whole number", "limit=0x10": "whole number", "limit=-1": "from 1 to", "limit=0": "from 1 to", "limit=5000": "from 1 to", "colour=red": "unknown query parameter", "limit=1&limit=2": "more than once",
		"after=%zz": "query", "=x": "unknown query parameter", "limit=99999999999999999999": "whole number"} {
		s.as(access.Viewer, "GET", "/api/v1/items?"+query, nil).want(http.StatusBadRequest, "input").has(says)
	}
	s.as(access.Viewer, "GET", "/api/v1/items?status=whatever", nil).want(http.StatusBadRequest, "input")
	s.as(access.Viewer, "GET", "/api/v1/timeline?from=yesterday", nil).want(http.StatusBadRequest, "input").has("not a time")
	s.as(access.Viewer, "GET", "/api/v1/board?flow=whatever", nil).want(http.StatusBadRequest, "input")
	// A query parameter that the route does not know is refused: ignoring flow= would start another flow.
	for _, at := range []string{"/api/v1/run/start?flow=screens", "/api/v1/run/stop?now=true", "/pipeline/analyze/blog/posts?flow=screens", "/api/v1/landings/1/undo?whole=1"} {
		s.as(access.Operator, "POST", at, nil).want(http.StatusBadRequest, "input").has("unknown query parameter")
	}
	s.as(access.Viewer, "GET", "/state?flow=screens", nil).want(http.StatusBadRequest, "input")
	// An answer must name at least one decision.
	for at, body := range map[string]string{"/api/v1/decide/undo": `{"refs":[]}`, "/api/v1/decide/items": `{"choices":[]}`} {
		s.as(access.Operator, "POST", at, body).want(http.StatusBadRequest, "input").has("no reference is given")
		s.as(access.Operator, "POST", at, nil).want(http.StatusBadRequest, "input")
	}
}

// Ambiguous requests are refused on every route, independent of its handler.
func TestAmbiguousRequests(t *testing.T) {
	s := newScene(t)
	session := s.login(s.member("ann", access.Admin))
	form := header("Content-Type", mediaForm)
	for i, at := range s.addresses() {
		rt := &s.server.table[i]
		if rt.pattern == "/events" || rt.pattern == "/logout" {
			continue
		}
		ask := func(path string, body any, change ...func(*http.Request)) answer {
			if rt.need.AtLeast == "" || rt.open || rt.failure == failureLFS || rt.failure == failureProtocol {
				return s.as(access.Admin, at[0], path, body, change...)
			}
			return s.send(at[0], path, body, append(change, session, s.sameOrigin)...)
		}
		if a := ask(at[1]+"?x=%ff", nil); a.status != http.StatusBadRequest {
			t.Errorf("%s: a query that is not UTF-8: %d %.200s", a.asked, a.status, a.body)
		}
		if at[0] != "POST" {
			continue
		}
		for name, body := range map[string]string{"UTF-8": "{\"write\":[\"a\xff\"]}", "twice": `{"a":1,"a":2}`, "deep": `{"params":{"arguments":{"paths":[],"paths":[]}}}`, "half": `{"a":"\udead"}`} {
			if a := ask(at[1], body); a.status != http.StatusBadRequest {
				t.Errorf("%s: %s: %d %.200s", a.asked, name, a.status, a.body)
			}
		}
		if a := ask(at[1], "word=%ff", form); a.status != http.StatusBadRequest {
			t.Errorf("%s: a form: %d %.200s", a.asked, a.status, a.body)
		}
	}
	for _, at := range []string{"/api/v1/items/%ff", "/api/v1/waiting/item/blog/%c3%28", "/nowhere/%80"} {
		s.as(access.Admin, "GET", at, nil).want(http.StatusBadRequest, "input").has("not UTF-8")
	}
	lfs := func(body string) answer {
		return s.as(access.Operator, "POST", "/lfs/locks", body, header("Content-Type", "application/vnd.git-lfs+json"))
	}
	lfs(`{"path":"app/models/post.rb","PATH":"app/models/user.rb"}`).want(http.StatusUnprocessableEntity).has("spelled")
	lfs(`{"Path":"app/models/post.rb"}`).want(http.StatusUnprocessableEntity).has("spelled")
}

// Unknown objects get 404. Wrong methods get 405.
func TestUnknownThings(t *testing.T) {
	s := newScene(t)
	s.audited("blog/posts", "Fix it")
	uuid := "7f0c7a39-0000-4000-8000-000000000001"
	for _, at := range []string{"/api/v1/items/j999", "/api/v1/items/j999/log", "/api/v1/items/j999/calls/1", "/api/v1/grants/" + uuid, "/api/v1/grants/x", "/api/v1/rescue/x", "/api/v1/waiting/item/blog/posts/i9", "/api/v1/waiting/plan/nobody",
		"/api/v1/waiting/colour/blog", "/api/v1/nowhere", "/nowhere", "/api/v2/state"} {
		s.as(access.Admin, "GET", at, nil).want(http.StatusNotFound, codeNotFound)
	}
	for at, body := range map[string]any{
		"/api/v1/items/j999/retry": nil, "/api/v1/items/j999/cancel": nil, "/api/v1/landings/99999/undo": nil, "/api/v1/landings/x/undo": nil, "/api/v1/rescue/x/drop": nil, "/api/v1/rescue/x/land": nil,
		"/api/v1/grants/" + uuid + "/force-release": map[string]any{"reason": "x", "confirm": "x"}, "/api/v1/units/redo/nobody": map[string]any{"phase": "analyze"},
		"/api/v1/units/undo/nobody": map[string]any{"batch": "b1"}, "/pipeline/analyze/nobody": nil, "/analyze/nobody": nil,
	} {
		s.as(access.Admin, "POST", at, body).want(http.StatusNotFound, codeNotFound)
	}
	s.as(access.Agent, "POST", "/api/v1/grants/"+uuid+"/renew", map[string]any{"token": "x"}).want(http.StatusConflict, "not_held")
	s.as(access.Agent, "POST", "/api/v1/grants/"+uuid+"/renew", map[string]any{}).want(http.StatusBadRequest, "input").has("token")
	a := s.as(access.Admin, "GET", "/api/v1/run/start", nil).want(http.StatusMethodNotAllowed, codeMethod)
	if a.header.Get("Allow") != "POST" {
		t.Errorf("Allow: %s", a.header.Get("Allow"))
	}
	s.as(access.Admin, "POST", "/state", nil).want(http.StatusMethodNotAllowed, codeMethod)
	s.as(access.Admin, "DELETE", "/api/v1/grants", nil).want(http.StatusMethodNotAllowed, codeMethod)
	s.as(access.Admin, "TRACE", "/api/v1/grants", nil).want(http.StatusMethodNotAllowed, codeMethod)
	s.as(access.Operator, "POST", "/pipeline/whatever/blog/posts", nil).want(http.StatusNotFound, codeNotFound).has("whatever")
}

// A repeated request runs once: if it arrives concurrently, later, or from a form. The same key with another
// request is refused.
func TestDoubleSubmits(t *testing.T) {
	s := newScene(t)
	body := map[string]any{"write": []string{"app/models/post.rb"}}
	key := header(onceHeader, "8c5f2a60-1")
	var wg sync.WaitGroup
	var mu sync.Mutex
	ids, replayed := map[string]int{}, atomic.Int64{}
	for range 20 {
		wg.Go(func() {
			var g given
			a := s.as(access.Agent, "POST", "/api/v1/grants", body, key).want(ok).into(&g)
			mu.Lock()
			defer mu.Unlock()
			ids[g.ID+g.Token]++
			if a.header.Get("Idempotent-Replayed") != "" {
				replayed.Add(1)
			}
		})
	}
	wg.Wait()
	if len(ids) != 1 || replayed.Load() != 19 {
		t.Errorf("%v, %d replayed", ids, replayed.Load())
	}
	s.as(access.Agent, "POST", "/api/v1/grants", map[string]any{"write": []string{"app/models/user.rb"}}, key).want(http.StatusConflict, codeReused)
	s.as(access.Agent, "POST", "/api/v1/grants", body).want(http.StatusLocked, "blocked") // without the key, this is a new request
	s.as(access.Operator, "POST", "/api/v1/grants", body, key).want(http.StatusLocked, "blocked")
	// A refusal is replayed, too.
	refused := s.as(access.Agent, "POST", "/api/v1/grants", body, header(onceHeader, "2")).want(http.StatusLocked, "blocked")
	again := s.as(access.Agent, "POST", "/api/v1/grants", body, header(onceHeader, "2")).want(http.StatusLocked, "blocked")
	if string(refused.body) != string(again.body) || again.header.Get("Idempotent-Replayed") == "" {
		t.Errorf("%s, then %s", refused.body, again.body)
	}
	// A form has its key in a field.
	s.audited("blog/posts", "Fix it")
	browser := s.login(s.member("ann", access.Operator))
	press := func(fields string) answer {
		return s.send("POST", "/do/answer", "flow=controllers&ref=-+item+blog/posts/i1&idempotency_key=f1&"+fields, browser, s.sameOrigin, header("Content-Type", "application/x-www-form-urlencoded"))
	}
	first := press("word=todo").want(ok).has("will be done")
	second := press("word=todo").want(ok)
	if string(first.body) != string(second.body) || second.header.Get("Idempotent-Replayed") == "" {
		t.Errorf("%s, then %s", first.body, second.body)
	}
	press("word=defer").want(http.StatusConflict)
	for _, wrong := range []string{"a b", strings.Repeat("x", 201), "<x>"} {
		s.as(access.Agent, "POST", "/api/v1/grants", body, header(onceHeader, wrong)).want(http.StatusBadRequest, "input").has(onceHeader)
	}
}

// A new person with a former person's name does not get that person's stored answers.
func TestAnswersOfAFormerHolder(t *testing.T) {
	s := newScene(t)
	body, key := map[string]any{"write": []string{"app/models/post.rb"}}, header(onceHeader, "8c5f2a60-2")
	var g given
	s.as(access.Agent, "POST", "/api/v1/grants", body, key).want(ok).into(&g)
	must(t, s.People.Revoke("the-agent"))
	s.tokens[access.Agent] = s.Token(t, "the-agent", access.Agent)
	if a := s.as(access.Agent, "POST", "/api/v1/grants", body, key).want(http.StatusLocked, "blocked"); strings.Contains(string(a.body), g.Token) {
		t.Errorf("the new one was given the token of the old one: %s", a.body)
	}
}

// Stored answers are bounded in number, size and age. Requests in progress are never dropped.
func TestWhatIsRememberedOfRequests(t *testing.T) {
	now := time.Now()
	o := newOnce(func() time.Time { return now })
	name := func(i int) onceName { return onceName{key: fmt.Sprint(i)} }
	keep := func(i int, answer string) {
		a, mine := o.begin(name(i), [32]byte{})
		if !mine {
			t.Fatalf("%d is known", i)
		}
		said := &recorded{status: ok}
		said.body.WriteString(answer)
		o.end(a, said, true)
	}
	running, _ := o.begin(name(-1), [32]byte{})
	for i := range onceAnswers + 100 {
		keep(i, "yes")
	}
	if n := len(o.kept); n > onceAnswers+1 || o.bytes != 3*(n-1) || len(o.order) > n+1 {
		t.Errorf("%d are kept, %d in order, with %d bytes", n, len(o.order), o.bytes)
	}
	if known, mine := o.begin(name(-1), [32]byte{}); mine || known != running {
		t.Error("what is under way was forgotten")
	}
	for i := range 100 {
		keep(100_000+i, strings.Repeat("x", onceLargest))
	}
	if o.bytes > onceBytes+onceLargest {
		t.Errorf("%d bytes are kept", o.bytes)
	}
	o.end(running, &recorded{}, false)
	now = now.Add(onceFor)
	keep(200_000, "")
	if len(o.kept) != 1 || o.bytes != 0 {
		t.Errorf("a day later %d are kept, with %d bytes", len(o.kept), o.bytes)
	}
}

// An act on an outdated page changes nothing, and the response says what changed.
//
// shows: GP-25
func TestStalePages(t *testing.T) {
	s := newScene(t)
	s.audited("blog/posts", "Fix it", "Polish it")
	var page waitingPage
	s.as(access.Operator, "GET", "/api/v1/waiting", nil).want(ok).into(&page)
	if len(page.Open) != 2 || page.Open[0].Version == "" {
		t.Fatalf("%+v", page)
	}
	ref := page.Open[0].Ref.String()
	seen := map[string]string{ref: page.Open[0].Version}
	s.as(access.Operator, "POST", "/api/v1/decide/todo", map[string]any{"refs": []string{ref}, "seen": seen}).want(ok).has(`"what":"will be done"`)
	a := s.as(access.Operator, "POST", "/api/v1/decide/reject", map[string]any{"refs": []string{ref}, "seen": seen}).want(http.StatusConflict, codeStale)
	a.has("TODO", "the-operator", `"became"`, ref)
	s.as(access.Operator, "POST", "/api/v1/decide/defer", map[string]any{"refs": []string{ref, page.Open[1].Ref.String()}, "seen": map[string]string{page.Open[1].Ref.String(): "0123456789abcdef"}}).want(http.StatusConflict)
	var unit view.Decision
	s.as(access.Viewer, "GET", "/api/v1/waiting/"+strings.Replace(ref, " ", "/", 1), nil).want(ok).into(&unit)
	if unit.Waits || unit.Item == nil || unit.Item.Decision != "TODO" {
		t.Errorf("%+v", unit.Item)
	}
	s.as(access.Operator, "POST", "/api/v1/decide/todo", map[string]any{"refs": []string{"whatever"}}).want(http.StatusBadRequest, "input")
	s.as(access.Operator, "POST", "/api/v1/decide/todo", map[string]any{"refs": []string{}}).want(http.StatusBadRequest, "input")
	s.as(access.Operator, "POST", "/api/v1/decide/approve", map[string]any{"refs": []string{ref}}).want(http.StatusBadRequest, "input")
	s.as(access.Operator, "POST", "/api/v1/decide/whatever", map[string]any{"refs": []string{ref}}).want(http.StatusNotFound, codeNotFound)
	s.as(access.Operator, "POST", "/api/v1/decide/defer", map[string]any{"where": "impact<=low"}).want(ok).has(`"done":[]`)
	s.as(access.Operator, "POST", "/api/v1/decide/defer", map[string]any{"where": "impact>=high"}).want(ok).has("is deferred")
	// A unit in the wrong status cannot start a phase. The response names its status.
	a = s.as(access.Operator, "POST", "/pipeline/analyze/blog/posts", nil).want(http.StatusConflict, codeWrongStatus)
	var p struct{ Error map[string]any }
	must(t, json.Unmarshal(a.body, &p))
	if p.Error["unit"] != "blog/posts" || p.Error["phase"] != "analyze" || p.Error["status"] == "" {
		t.Errorf("%v", p.Error)
	}
}

// Consecutive pages of a list have no gaps, even if entries change between requests.
func TestPages(t *testing.T) {
	s := newScene(t)
	var all []string
	for i := range 25 {
		all = append(all, s.taken(access.Agent, fmt.Sprintf("app/models/m%02d.rb", i)).ID)
	}
	var got []string
	next, pages := "", 0
	for {
		var page grantPage
		s.as(access.Agent, "GET", "/api/v1/grants?limit=10&after="+next, nil).want(ok).into(&page)
		for _, g := range page.Grants {
			got = append(got, g.ID)
		}
		pages++
		if next = page.Next; next == "" {
			break
		}
		if pages == 1 { // remove an entry of the first page
			_, err := s.App.Locks.Request(t.Context(), got[9])
			must(t, err, s.App.Locks.ForceRelease(t.Context(), got[9], lockkeeper.Actor{Name: "ann", Kind: lockkeeper.ActorPerson}, "for the test"))
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(all) || pages != 3 {
		t.Errorf("%d pages: %v\nwant %v", pages, got, all)
	}
	var lines []uint64
	for before := uint64(0); ; {
		var page view.Audit
		s.as(access.Viewer, "GET", fmt.Sprintf("/api/v1/audit?limit=7&after=%d", before), nil).want(ok).into(&page)
		for _, l := range page.Lines {
			lines = append(lines, l.Seq)
		}
		if before = page.Next; before == 0 {
			break
		}
	}
	for i, seq := range lines {
		if want := s.last() - uint64(i); seq != want {
			t.Fatalf("line %d is of event %d, not %d", i, seq, want)
		}
	}
	if uint64(len(lines)) != s.last() {
		t.Errorf("%d lines of %d", len(lines), s.last())
	}
}
