package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/surface/access"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/view"
)

// shown returns the dashboard of a scene.
func shown(t *testing.T, s Views) *Dashboard {
	t.Helper()
	d, err := New(Options{View: s, Now: func() time.Time { return noon }, Failed: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// mux routes requests to a dashboard as the server does after its checks.
func mux(d *Dashboard) *http.ServeMux {
	m := http.NewServeMux()
	for _, route := range Routes() {
		m.HandleFunc(route.Method+" "+route.Pattern, func(w http.ResponseWriter, r *http.Request) { route.Serve(d, w, r) })
	}
	return m
}

// get requests an address as a user with a role.
func get(t *testing.T, d *Dashboard, role access.Role, address string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	return send(t, d, role, httptest.NewRequest(http.MethodGet, address, nil), change...)
}

func send(t *testing.T, d *Dashboard, role access.Role, r *http.Request, change ...func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	for _, c := range change {
		c(r)
	}
	if role != "" {
		r = r.WithContext(access.With(r.Context(), access.Person{Name: "ann", Role: role}))
	}
	w := httptest.NewRecorder()
	mux(d).ServeHTTP(w, r)
	return w
}

func asPart(r *http.Request) { r.Header.Set(PartHeader, "-") }

// addresses returns the URLs of all pages, and of every decision on the page Decide.
func addresses(s *scene) []string {
	list := []string{"/item/admin/posts/b1", "/log/admin/posts/b1", "/call/admin/posts/b1?n=1", "/unit/admin/posts", "/unit/?name=admin/../posts", "/diff/admin/posts/b1", "/landing/4650", "/rescue/20260131T090000.123-1b4e28ba",
		"/decide?impact=high&effort=low&q=keyset&unit=admin/posts", "/board?status=error&q=ses", "/audit?q=%3Cscript%3E&since=2026-01-31T08:00", "/timeline?from=2026-01-31T10:00&to=2026-01-31T11:00", "/items?status=error&after=12"}
	for _, p := range pages() {
		if address := strings.TrimSuffix(p.pattern, "{$}"); !strings.Contains(address, "{") {
			list = append(list, address)
		}
	}
	for kind := range s.gates {
		list = append(list, "/decide?"+url.Values{"ref": {usual.ref(kind).String()}}.Encode())
	}
	slices.Sort(list)
	return list
}

func scenes() map[string]*scene {
	return map[string]*scene{"empty": empty(), "middle": middle(usual), "finished": finished(), "failed": failed(), "hostile": middle(hostile)}
}

// Every page, in every state and for every role, is well formed, runs no foreign code, has only working links,
// and is accessible.
// shows: SW-84 PL-94 GP-9 LM-43
func TestPages(t *testing.T) {
	for name, s := range scenes() {
		d := shown(t, s)
		for _, role := range []access.Role{access.Viewer, access.Operator, access.Admin} {
			for _, address := range addresses(s) {
				t.Run(name+" "+string(role)+" "+address, func(t *testing.T) {
					w := get(t, d, role, address)
					if w.Code != http.StatusOK {
						t.Fatalf("%d: %s", w.Code, w.Body)
					}
					page := read(t, w.Body.String())
					checkSafe(t, w.Body.String(), page)
					checkLeads(t, d, page, role)
					checkUsable(t, page)
				})
			}
		}
	}
}

// checkSafe checks that a page contains nothing that a browser would run.
func checkSafe(t *testing.T, text string, page *element) {
	t.Helper()
	if at := strings.IndexFunc(text, isOdd); at >= 0 {
		t.Errorf("a character that cannot be seen: %q", text[max(0, at-40):min(len(text), at+40)])
	}
	for _, e := range page.all() {
		src, hasSrc := e.attr["src"]
		switch e.name {
		case "script", "img", "iframe", "object", "embed", "base", "style":
			if e.name != "script" || !hasSrc || !strings.HasPrefix(src, "/assets/") || e.words() != "" {
				t.Errorf("%v", e)
			}
		}
		for name, value := range e.attr {
			lower := strings.ToLower(strings.TrimSpace(value))
			if strings.HasPrefix(name, "on") || name == "style" || strings.HasPrefix(name, "hx-on") || strings.HasPrefix(name, "hx-vars") || name == "srcdoc" {
				t.Errorf("%v runs something", e)
			}
			if (name == "href" || name == "action" || name == "src" || name == "formaction") && value != "" && !strings.HasPrefix(value, "/") && !strings.HasPrefix(value, "#") || strings.HasPrefix(lower, "javascript:") {
				t.Errorf("%v leads elsewhere", e)
			}
		}
	}
}

// checkLeads checks that links and forms lead to existing routes, and that a page offers no act that the role
// does not permit.
func checkLeads(t *testing.T, d *Dashboard, page *element, role access.Role) {
	t.Helper()
	routes := map[string]Route{}
	for _, r := range Routes() {
		routes[r.Method+" "+r.Pattern] = r
	}
	served := mux(d)
	find := func(method, address string) (Route, bool) {
		_, pattern := served.Handler(httptest.NewRequest(method, address, nil))
		r, ok := routes[pattern]
		return r, ok
	}
	for _, a := range page.all("a") {
		if href := a.attr["href"]; strings.HasPrefix(href, "/") {
			if _, ok := find(http.MethodGet, href); !ok {
				t.Errorf("%s leads nowhere", href)
			}
		}
	}
	for _, f := range page.all("form") {
		action := f.attr["action"]
		if f.attr["method"] == "get" {
			if _, ok := find(http.MethodGet, action); !ok {
				t.Errorf("the form %s leads nowhere", action)
			}
			continue
		}
		if action == "/logout" { // a route of the server
			continue
		}
		r, ok := find(http.MethodPost, action)
		if !ok || f.attr["method"] != "post" || !role.Meets(r.Need) {
			t.Errorf("%v is not offered to %s, or leads nowhere", f, role)
		}
		if !slices.ContainsFunc(f.fields(""), func(f [2]string) bool { return f[0] == "idempotency_key" && len(f[1]) >= 20 }) {
			t.Errorf("%v has no key of its own", f)
		}
	}
}

// checkUsable checks that a page works with a screen reader and without a mouse.
func checkUsable(t *testing.T, page *element) {
	t.Helper()
	count := map[string]int{}
	ids, level := map[string]bool{}, 0
	for _, e := range page.all() {
		if !e.inside("svg") { // in SVG, title is a tooltip
			count[e.name]++
		}
		if id, ok := e.attr["id"]; ok {
			if ids[id] {
				t.Errorf("two elements have the id %q", id)
			}
			ids[id] = true
		}
		switch e.name {
		case "html":
			if e.attr["lang"] == "" {
				t.Error("the page does not say its language")
			}
		case "h1", "h2", "h3", "h4":
			n := int(e.name[1] - '0')
			if n > level+1 {
				t.Errorf("%v %q comes after a heading of level %d", e, e.words(), level)
			}
			level = n
		case "input", "select", "textarea":
			if e.attr["type"] != "hidden" && !e.inside("label") && e.attr["aria-label"] == "" {
				t.Errorf("%v has no label", e)
			}
		case "button", "a", "summary":
			if e.words() == "" && e.attr["aria-label"] == "" {
				t.Errorf("%v has no name", e)
			}
		case "time":
			if _, err := time.Parse(time.RFC3339, e.attr["datetime"]); err != nil || e.attr["title"] == "" || e.all("b")[0].words() == "" || e.all("i")[0].words() == "" {
				t.Errorf("%v %q: a time has its age, what the clock said, and all of it", e, e.words())
			}
		case "svg":
			if e.attr["aria-hidden"] != "true" {
				t.Errorf("%v is read out, and says nothing", e)
			}
		}
		if above := e.above; above != nil && (e.name == "a" || e.name == "button" || e.name == "form") && e.inside(e.name) {
			t.Errorf("%v is within another", e)
		}
	}
	for _, e := range page.all() {
		for _, name := range []string{"aria-labelledby", "aria-describedby", "for"} {
			if id, ok := e.attr[name]; ok && !ids[id] {
				t.Errorf("%v: there is no %s", e, id)
			}
		}
	}
	for name, n := range map[string]int{"main": 1, "h1": 1, "title": 1, "header": 1} {
		if count[name] < n || name != "header" && count[name] > n {
			t.Errorf("%d times <%s>", count[name], name)
		}
	}
}

// Hostile text is shown as text and has no effect.
func TestHostileTexts(t *testing.T) {
	d := shown(t, middle(hostile))
	for address, says := range map[string][]string{
		"/":                                 {`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`},
		"/item/x":                           {`</pre><script>alert(2)</script>`, "⟨U+202E⟩", "⟨U+000A⟩", "{{.Secret}}", "\ufffdnul", "⟨U+200B⟩"},
		"/unit/admin/posts":                 {`</p><script>alert('x')</script>`, "⟨U+202E⟩", `<script>alert(1)</script>`},
		"/landing/4650":                     {`<script>alert(1)</script>`, "⟨U+202E⟩"},
		"/locks":                            {`"><img src=x onerror=alert(1)>`, "⟨U+202E⟩"},
		"/decide?ref=review+admin/posts/b1": {`</p><script>alert('x')</script>`},
		"/audit":                            {`</p><script>alert('x')</script>`},
	} {
		text := read(t, get(t, d, access.Admin, address).Body.String()).words()
		for _, part := range says {
			if !strings.Contains(text, part) {
				t.Errorf("%s does not show %q", address, part)
			}
		}
	}
}

// partOf returns the reply to a page's own script, which shows a rendering.
func partOf(t *testing.T, d *Dashboard, role access.Role, address, shown string) (reply partReply) {
	t.Helper()
	body := get(t, d, role, address, func(r *http.Request) { r.Header.Set(PartHeader, shown) }).Body
	if err := json.Unmarshal(body.Bytes(), &reply); err != nil {
		t.Fatalf("%s: %v: %s", address, err, body)
	}
	return reply
}

// A page's own script gets only the inner part, with the title and the counts of the menu. If it
// shows that part already, it gets nothing.
func TestParts(t *testing.T) {
	s := middle(usual)
	d := shown(t, s)
	for _, address := range addresses(s) {
		reply := partOf(t, d, access.Operator, address, "-")
		if reply.HTML == nil || strings.Contains(*reply.HTML, "<html") || len(read(t, *reply.HTML).all("main")) > 0 {
			t.Fatalf("%s: a part has all of the page in it, or nothing", address)
		}
		bare := strings.HasPrefix(address, "/log/")
		if !bare && (!strings.Contains(reply.Title, "(7)") || reply.Needs == nil || *reply.Needs != 7 || reply.Heading == "") || bare && reply.Title != "" {
			t.Errorf("%s: %+v", address, reply)
		}
		again := partOf(t, d, access.Operator, address, reply.Hash)
		if again.Hash != reply.Hash || again.HTML != nil || again.Changes != nil {
			t.Errorf("%s differs the second time: %+v", address, again.Changes)
		}
		page := read(t, get(t, d, access.Operator, address).Body.String())
		if hash := page.hashOfPart(); !bare && hash != reply.Hash {
			t.Errorf("%s: the page has the hash %q, its part %q", address, hash, reply.Hash)
		}
	}
}

// hashOfPart returns the hash of the part that a page shows.
func (e *element) hashOfPart() string {
	for _, div := range e.all("div") {
		if div.attr["id"] == "page" {
			return div.attr["data-hash"]
		}
	}
	return ""
}

// A page without scripts has keys for its forms and the ages of times.
func TestWithoutScripts(t *testing.T) {
	d := shown(t, middle(usual))
	page := get(t, d, access.Admin, "/locks").Body.String()
	if strings.Contains(page, emptyKey) || emptyAge.MatchString(page) || !strings.Contains(page, "9m ago") {
		t.Errorf("%s", page)
	}
}

// Errors are shown in the page.
func TestTrouble(t *testing.T) {
	d := shown(t, middle(usual))
	for address, want := range map[string]int{
		"/decide?ref=nonsense": http.StatusBadRequest, "/audit?since=yesterday": http.StatusBadRequest, "/items?after=-1": http.StatusBadRequest,
		"/timeline?from=x": http.StatusBadRequest, "/assets/nothing.js": http.StatusNotFound, "/nowhere": http.StatusNotFound,
	} {
		w := get(t, d, access.Operator, address)
		if w.Code != want {
			t.Errorf("%s: %d instead of %d", address, w.Code, want)
		}
		if want == http.StatusBadRequest && !strings.Contains(w.Body.String(), "Next: ") {
			t.Errorf("%s does not say what to do", address)
		}
		if want == http.StatusBadRequest && (!strings.Contains(w.Body.String(), "7<span class=\"sr\"> waiting") || !strings.Contains(w.Body.String(), `name="lockkeeper-seq" content="4711"`)) {
			t.Errorf("%s does not say how much waits, or from where on events are to come: %s", address, w.Body)
		}
	}
	if w := send(t, d, access.Operator, httptest.NewRequest(http.MethodPost, "/do/answer", nil)); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `name="lockkeeper-seq" content="4711"`) || !strings.Contains(w.Body.String(), "(7) What happened") {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
	var heard []error
	d.failed = func(err error) { heard = append(heard, err) }
	d.view = broken{d.view}
	if w := get(t, d, access.Operator, "/"); w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "the disk is gone") || len(heard) != 1 {
		t.Errorf("%d %v: %s", w.Code, heard, w.Body)
	} else if text := w.Body.String(); strings.Contains(text, "> waiting<") || strings.Contains(text, "lockkeeper-seq") {
		t.Errorf("it says what it does not know: %s", text)
	}
	if reply := partOf(t, d, access.Operator, "/", "-"); reply.Needs != nil {
		t.Errorf("it says what it does not know: %+v", reply)
	}
}

// broken is a codebase whose state cannot be read.
type broken struct{ Views }

func (broken) Decisions(context.Context, string) (*view.Decisions, error) {
	return nil, errors.New("the disk is gone")
}

// Assets have the expected content and type, and browsers can cache them.
func TestAssets(t *testing.T) {
	d := shown(t, empty())
	page := read(t, get(t, d, access.Viewer, "/").Body.String())
	for _, e := range page.all("script", "link") {
		address := e.attr["src"] + e.attr["href"]
		w := get(t, d, "", address)
		if w.Code != http.StatusOK || w.Body.Len() == 0 || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d %v", address, w.Code, w.Header())
		}
	}
	notice := get(t, d, "", "/assets/idiomorph.NOTICE.txt").Body.String()
	sum := sha256.Sum256(get(t, d, "", "/assets/idiomorph.min.js").Body.Bytes())
	if !strings.Contains(notice, hex.EncodeToString(sum[:])) {
		t.Errorf("idiomorph is not what the notice says: %x", sum)
	}
	if !strings.Contains(get(t, d, "", "/assets/idiomorph.LICENSE.txt").Body.String(), "Permission to use, copy") {
		t.Error("idiomorph has no license")
	}
	notice = get(t, d, "", "/assets/highlight.NOTICE.txt").Body.String()
	sum = sha256.Sum256(get(t, d, "", "/assets/highlight.min.js").Body.Bytes())
	if !strings.Contains(notice, hex.EncodeToString(sum[:])) || !strings.Contains(get(t, d, "", "/assets/highlight.LICENSE.txt").Body.String(), "Redistribution and use") {
		t.Errorf("highlight.js is not what the notice says, or has no licence: %x", sum)
	}
	for address, want := range map[string]bool{"/": false, "/board": false, "/unit/x": false, "/landing/1": true, "/diff/x/b1": true, "/decide": true} {
		if got := strings.Contains(get(t, d, access.Viewer, address).Body.String(), "/assets/highlight.min.js"); got != want {
			t.Errorf("%s loads the script for colors: %v", address, got)
		}
	}
	file := get(t, d, "", "/assets/app.css")
	same := get(t, d, "", "/assets/app.css", func(r *http.Request) { r.Header.Set("If-None-Match", file.Header().Get("ETag")) })
	if same.Code != http.StatusNotModified || same.Body.Len() != 0 || file.Header().Get("Cache-Control") != "no-cache" {
		t.Errorf("%d %v", same.Code, file.Header())
	}
}

// Every kind of event has topics, and every page follows at least one topic.
func TestTopics(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../../event.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if kind, isKind := specType(spec); ok && isKind && kind == "EventKind" {
			found++
			name, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if _, known := topics[lockkeeper.EventKind(name)]; err != nil || !known {
				t.Errorf("what %s is about is not said", name)
			}
		}
		return true
	})
	if found != len(topics) {
		t.Errorf("%d kinds of events, and %d are known", found, len(topics))
	}
	for _, p := range pages() {
		if p.topics == "" && !p.bare {
			t.Errorf("%s follows nothing", p.name)
		}
	}
}

func specType(spec *ast.ValueSpec) (string, bool) {
	if spec == nil {
		return "", false
	}
	id, ok := spec.Type.(*ast.Ident)
	if !ok {
		return "", false
	}
	return id.Name, true
}

// Changes are counted since the person's previous visit, not since the previous request.
func TestSinceLastLooked(t *testing.T) {
	s := &counting{scene: middle(usual)}
	now := noon
	d := shown(t, s)
	d.now = func() time.Time { return now }
	var cookie *http.Cookie
	look := func(seq uint64) uint64 {
		s.now.Seq = seq
		w := get(t, d, access.Viewer, "/", func(r *http.Request) {
			if cookie != nil {
				r.AddCookie(cookie)
			}
		})
		cookie = w.Result().Cookies()[0]
		if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode {
			t.Errorf("%v", cookie)
		}
		return s.since
	}
	check := func(got, want uint64) {
		t.Helper()
		if got != want {
			t.Errorf("since %d instead of %d", got, want)
		}
	}
	check(look(10), 0)
	check(look(20), 10)
	now = now.Add(visit / 2)
	check(look(30), 10) // still the same visit
	now = now.Add(visit + time.Second)
	check(look(40), 30) // a new visit
	w := send(t, d, access.Viewer, httptest.NewRequest(http.MethodPost, "/do/seen", nil), asPart, func(r *http.Request) { r.AddCookie(cookie) })
	cookie = w.Result().Cookies()[0]
	check(look(50), 40)
	cookie = &http.Cookie{Name: markName, Value: "99999999999999999999.1.x"}
	check(look(60), 0)
}

// counting records the event number since which changes were requested.
type counting struct {
	*scene
	since uint64
}

func (c *counting) Now(_ context.Context, since uint64) (*view.Now, error) {
	c.since = since
	return &c.scene.now, nil
}

// The list of decisions is cut around the selected one, and each decision links to the next.
func TestDecideList(t *testing.T) {
	s := middle(usual)
	first := s.queue.Open[0]
	s.queue.Open = nil
	for i := range 400 {
		g := first
		g.Ref.Item = fmt.Sprintf("i%d", i)
		s.queue.Open = append(s.queue.Open, g)
	}
	d := shown(t, s)
	look := func(item string) map[string]string {
		page := read(t, get(t, d, access.Operator, "/decide?kind=item&ref=item+admin/posts/"+item).Body.String())
		keys := map[string]string{}
		for _, a := range page.all("a") {
			if key := a.attr["data-key"]; key == "j" || key == "k" {
				u, err := url.Parse(a.attr["href"])
				if err != nil {
					t.Fatal(err)
				}
				keys[key] = u.Query().Get("ref")
				if u.Query().Get("kind") != "item" {
					t.Error("the filter is lost on the way")
				}
			}
		}
		shown := 0
		for _, nav := range page.all("nav") {
			if nav.attr["id"] == "waiting" {
				shown = len(nav.all("li"))
			}
		}
		if shown != gatesShown {
			t.Errorf("%d are listed", shown)
		}
		return keys
	}
	for item, want := range map[string]map[string]string{
		"i0":   {"j": "item admin/posts/i1"},
		"i200": {"k": "item admin/posts/i199", "j": "item admin/posts/i201"},
		"i399": {"k": "item admin/posts/i398"},
	} {
		if got := look(item); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v instead of %v", item, got, want)
		}
	}
}

// The page of kept changes leaves out those that need nobody, as the command does, and leads to all of them.
func TestResolvedChangesAreLeftOut(t *testing.T) {
	s := middle(usual)
	resolved := s.rescue.Entries[0]
	resolved.ID, resolved.Path, resolved.Done, resolved.Ref = "20260131T080000.123-1b4e28bb", "app/resolved.rb", true, nil
	s.rescue.Entries = append(s.rescue.Entries, resolved)
	d := shown(t, s)
	page := get(t, d, access.Viewer, "/rescue").Body.String()
	if strings.Contains(page, resolved.ID) || !strings.Contains(page, s.rescue.Entries[0].ID) || !strings.Contains(page, "1 resolved: show all") {
		t.Errorf("listed: %s", page)
	}
	if page := get(t, d, access.Viewer, "/rescue?all=1").Body.String(); !strings.Contains(page, resolved.ID) || strings.Contains(page, "show all") {
		t.Errorf("all: %s", page)
	}
	s.rescue.Entries = s.rescue.Entries[1:]
	if page := get(t, d, access.Viewer, "/rescue").Body.String(); !strings.Contains(page, "Nothing needs you.") {
		t.Errorf("none: %s", page)
	}
}

// The acts of a group are about the changes of the group that the page lists, not about those that its filter leaves out.
func TestActsOfAFilteredGroup(t *testing.T) {
	s := middle(usual)
	other := s.rescue.Entries[0]
	other.ID, other.Path = "20260131T080000.123-1b4e28bb", "app/other.rb"
	s.rescue.Entries = append(s.rescue.Entries, other)
	d := shown(t, s)
	group := "group=" + acts.GroupOf(other.Entry)
	page := get(t, d, access.Operator, "/rescue?where=path%3Dapp/other.rb").Body.String()
	if n := strings.Count(page, `name="where" value="path=app/other.rb,`+group+`"`); n != 2 || strings.Contains(page, `value="`+group+`"`) {
		t.Errorf("%d acts: %s", n, page)
	}
	if page := get(t, d, access.Operator, "/rescue").Body.String(); strings.Count(page, `name="where" value="`+group+`"`) != 2 {
		t.Errorf("without a filter: %s", page)
	}
}

// The page of kept changes stays small, however many there are: it has a part of the groups, and of a group the newest entries.
func TestManyKeptChanges(t *testing.T) {
	s := middle(usual)
	one := s.rescue.Entries[0]
	s.rescue.Entries = nil
	for n := range 400 {
		one.ID, one.Holder = fmt.Sprintf("20260131T%06d.123-1b4e28ba", 100000-n), fmt.Sprintf("blog/posts/b%d", n/10)
		s.rescue.Entries = append(s.rescue.Entries, one)
	}
	d := shown(t, s)
	page := get(t, d, access.Operator, "/rescue").Body.String()
	if n := strings.Count(page, `id="kept-`); n != groupsShown*samplesShown || len(page) > 150_000 || !strings.Contains(page, "1 to 15 of 40 groups") || !strings.Contains(page, "Drop 400") {
		t.Errorf("%d rows, %d bytes", n, len(page))
	}
	page = get(t, d, access.Operator, "/rescue?from=30").Body.String()
	if !strings.Contains(page, "31 to 40 of 40 groups") || strings.Contains(page, ">Older") {
		t.Error("the last page is missing")
	}
	page = get(t, d, access.Operator, "/rescue?where=batch%3Dblog%2Fposts%2Fb7").Body.String()
	if n := strings.Count(page, `id="kept-`); n != 10 || !strings.Contains(page, "1 to 10 of 10") && strings.Contains(page, "Older") {
		t.Errorf("%d rows of a group", n)
	}
	if page = get(t, d, access.Operator, "/rescue?where=size%3D3").Body.String(); !strings.Contains(page, "unknown field size") {
		t.Error("a condition that is not usable is not explained")
	}
}
