package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"lockkeeper"
	"lockkeeper/internal/agent/scripted"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/job"
	"lockkeeper/internal/project/projecttest"
	"lockkeeper/internal/surface/access"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/view"
	"lockkeeper/internal/surface/web"
	"lockkeeper/rescue"
	"lockkeeper/sched"
)

// A tour sends requests to routes and checks every response against the OpenAPI document.
type tour struct {
	*scene
	compiler *jsonschema.Compiler
	document map[string]any
	seen     map[string]bool // responses seen so far, by wayOf
}

// wayOf returns the key of one route and response status.
func wayOf(rt *route, status int) string { return fmt.Sprint(rt.key(), " ", status) }

const documentURL = "http://lockkeeper/openapi.json"

func newTour(t *testing.T) *tour {
	u := &tour{scene: newScene(t), compiler: jsonschema.NewCompiler(), seen: map[string]bool{}}
	a := u.as(access.Agent, "GET", "/api/v1/openapi.json", nil).want(ok)
	read, err := jsonschema.UnmarshalJSON(strings.NewReader(string(a.body)))
	must(t, err)
	u.document = read.(map[string]any)
	u.compiler.DefaultDraft(jsonschema.Draft2020)
	must(t, u.compiler.AddResource(documentURL, u.document))
	u.conforms(a)
	return u
}

// operation returns the OpenAPI operation of a route.
func (u *tour) operation(rt *route) map[string]any {
	u.t.Helper()
	paths := u.document["paths"].(map[string]any)
	at, _ := paths[addressPattern(rt)].(map[string]any)
	op, _ := at[strings.ToLower(rt.method)].(map[string]any)
	if op == nil {
		u.t.Fatalf("%s is not in the document", rt.key())
	}
	return op
}

// ask sends a request with a sufficient role, requires success, and checks the response against the document.
func (u *tour) ask(method, path string, body any) answer {
	u.t.Helper()
	role := access.Admin
	if u.route(method, path).need.Agents {
		role = access.Agent
	}
	a := u.as(role, method, path, body)
	if a.status != ok {
		u.t.Errorf("%s: %d %.600s", a.asked, a.status, a.body)
		return a
	}
	return u.conforms(a)
}

// route returns the route of an address.
func (u *tour) route(method, path string) *route {
	u.t.Helper()
	r, err := http.NewRequest(method, "http://x"+path, nil)
	must(u.t, err)
	rt, _, err := u.server.find(r)
	must(u.t, err)
	return rt
}

// conforms checks a response against the document's entry for its route and status.
func (u *tour) conforms(a answer) answer {
	u.t.Helper()
	method, path, _ := strings.Cut(a.asked, " ")
	rt := u.route(method, path)
	u.operation(rt)
	ways := rt.ways()
	i := slices.IndexFunc(ways, func(r reply) bool { return r.status == a.status })
	if i < 0 {
		u.t.Errorf("%s answers with %d, which is not described: %.600s", a.asked, a.status, a.body)
		return a
	}
	u.seen[wayOf(rt, a.status)] = true
	media, is := ways[i].media, a.header.Get("Content-Type")
	switch {
	case media == "" && len(a.body) > 0:
		u.t.Errorf("%s: %d has a body, which is not described: %.600s", a.asked, a.status, a.body)
	case media != mediaAny && !strings.HasPrefix(is, media):
		u.t.Errorf("%s is %s, not %s", a.asked, is, media)
	}
	if !strings.HasSuffix(media, "json") {
		return a
	}
	pointer := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D", "+", "%2B").Replace
	s, err := u.compiler.Compile(fmt.Sprintf("%s#/paths/%s/%s/responses/%d/content/%s/schema", documentURL, pointer(addressPattern(rt)), strings.ToLower(rt.method), a.status, pointer(media)))
	must(u.t, err)
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(a.body)))
	must(u.t, err)
	if err := s.Validate(value); err != nil {
		u.t.Errorf("%s does not answer as described: %v\n%.1000s", a.asked, err, a.body)
	}
	return a
}

// unasked is the one route that cannot succeed in this test: it needs an API key.
const unasked = "POST /api/v1/decide/api"

// ofDashboard reports whether a route is a page or a form of the dashboard. The dashboard's own tests check
// their content. Here each of them must answer with HTML.
func ofDashboard(rt *route) bool {
	return slices.ContainsFunc(web.Routes(), func(page web.Route) bool { return page.Method == rt.method && page.Pattern == rt.pattern })
}

// The document describes exactly the existing routes, including those of the dashboard, of agents and of
// git-lfs. The tour requests each of them and sees every documented response.
//
// shows: GP-25 CF-32 PL-77
func TestEveryRoute(t *testing.T) {
	u := newTour(t)
	u.tourLocks()
	u.tourQueue()
	u.tourRun()
	u.tourDecisions()
	u.tourUnits()
	u.tourTree()
	u.tourRest()
	u.tourPages()
	u.tourAgents()
	u.tourLFS()
	var missing []string
	described := map[string]bool{}
	for address, at := range u.document["paths"].(map[string]any) {
		for method := range at.(map[string]any) {
			described[strings.ToUpper(method)+" "+address] = true
		}
	}
	for i := range u.server.table {
		rt := &u.server.table[i]
		delete(described, rt.method+" "+addressPattern(rt))
		u.operation(rt)
		for _, way := range rt.ways() {
			if rt.key() != unasked && !ofDashboard(rt) && !u.seen[wayOf(rt, way.status)] {
				missing = append(missing, wayOf(rt, way.status))
			}
		}
	}
	slices.Sort(missing)
	if len(missing) > 0 {
		t.Errorf("never answered so:\n  %s", strings.Join(missing, "\n  "))
	}
	if len(described) > 0 {
		t.Errorf("described, and not there: %v", slices.Sorted(maps.Keys(described)))
	}
}

func (u *tour) tourLocks() {
	u.t.Helper()
	var g, up given
	u.ask("POST", "/api/v1/grants", map[string]any{"read": []string{"app/models/"}, "write": []string{"app/x.rb"}, "holder": "otter", "reason": "tour", "ttl_seconds": 60, "wait_seconds": 1}).into(&g)
	if g.Holder != "the-agent/otter" || g.Token == "" || g.Metadata["reason"] != "tour" {
		u.t.Errorf("%+v", g)
	}
	u.ask("GET", "/api/v1/grants", nil).has(g.ID).hasNot(g.Token)
	u.ask("GET", "/api/v1/grants/"+g.ID, nil).has(g.ID).hasNot(g.Token)
	u.ask("GET", "/api/v1/check?write=app/y.rb&read=app/z.rb", nil).has(`"free":true`)
	u.as(access.Agent, "GET", "/api/v1/check?write=app/x.rb", nil).want(ok).has(`"free":false`, "the-agent/otter")
	u.as(access.Operator, "POST", "/api/v1/grants", map[string]any{"write": []string{"app/x.rb"}}).want(http.StatusLocked, "blocked").has("the-agent/otter", `"next":"repeat the request with wait_seconds`)
	u.as(access.Operator, "POST", "/api/v1/grants", map[string]any{"write": []string{"app/x.rb"}, "wait_seconds": 0.05}).want(http.StatusLocked, "timeout").has("waited_seconds")
	u.as(access.Operator, "POST", "/api/v1/grants", map[string]any{"lock_request": map[string]any{"read_paths": []string{"app/models/"}, "write_paths": []string{"app/w.rb"}}, "wait": true, "holder": "badger"}).want(ok).has(`"read_paths":["app/models"],"write_paths":["app/w.rb"]`).into(&up)
	u.as(access.Operator, "POST", "/api/v1/grants/"+up.ID+"/release", map[string]any{"token": up.Token}).want(ok)
	u.as(access.Operator, "POST", "/api/v1/grants", map[string]any{"write": []string{"app/"}}).want(http.StatusUnprocessableEntity, "over_lock")
	u.ask("POST", "/api/v1/grants/"+g.ID+"/renew", map[string]any{"token": g.Token})
	u.as(access.Operator, "POST", "/api/v1/grants/"+g.ID+"/release", map[string]any{"token": "wrong"}).want(http.StatusConflict, "not_held")
	u.ask("POST", "/api/v1/grants/"+g.ID+"/release", map[string]any{"token": g.Token}).has(`"released":true`)
	u.ask("POST", "/api/v1/grants/"+g.ID+"/release", map[string]any{"token": g.Token}).has(`"released":false`)
	u.ask("POST", "/api/v1/grants/nonsense/release", map[string]any{"token": "x"}).has(`"released":false`)
	u.ask("POST", "/api/v1/grants", map[string]any{"upgradeable": []string{"app/u.rb"}, "policy": "dal"}).into(&up)
	u.ask("POST", "/api/v1/grants/"+up.ID+"/upgrade", map[string]any{"token": up.Token, "paths": []string{"app/u.rb"}}).has(`"write_paths":["app/u.rb"]`)
	u.ask("POST", "/api/v1/grants/"+up.ID+"/extend", map[string]any{"token": up.Token, "write": []string{"app/v.rb"}}).has("app/v.rb")
	u.ask("POST", "/api/v1/grants/"+up.ID+"/release", map[string]any{"token": up.Token})

	held := u.taken(access.Agent, "app/x.rb")
	force := "/api/v1/grants/" + held.ID + "/force-release"
	for _, role := range []access.Role{access.Agent, access.Operator} {
		u.as(role, "POST", force, map[string]any{"reason": "x", "confirm": "the-agent"}).want(http.StatusForbidden, codeForbidden)
	}
	u.as(access.Admin, "POST", force, map[string]any{"confirm": "the-agent"}).want(http.StatusBadRequest, "input").has("reason")
	u.as(access.Admin, "POST", force, map[string]any{"reason": "x", "confirm": "otter"}).want(http.StatusBadRequest, "input").has("confirm")
	u.ask("POST", force, map[string]any{"reason": "it hangs", "confirm": "the-agent"})
	u.ask("GET", "/api/v1/audit?kind=force_released&who=the-admin", nil).has("it hangs", "the-admin")
	u.tourClear()
}

// tourClear clears all locks. Clearing is refused if a lock was acquired since the admin saw the list.
func (u *tour) tourClear() {
	u.t.Helper()
	u.taken(access.Agent, "app/x.rb")
	var locks view.Locks
	u.ask("GET", "/api/v1/locks", nil).into(&locks)
	sent := map[string]any{"reason": "the power failed", "confirm": "clear", "seq": locks.Seq}
	u.as(access.Operator, "POST", "/api/v1/locks/clear", sent).want(http.StatusForbidden, codeForbidden)
	u.as(access.Admin, "POST", "/api/v1/locks/clear", map[string]any{"reason": "x", "seq": locks.Seq}).want(http.StatusBadRequest, "input").has("confirm")
	u.as(access.Admin, "POST", "/api/v1/locks/clear", map[string]any{"confirm": "clear", "seq": locks.Seq}).want(http.StatusBadRequest, "input").has("reason")
	u.taken(access.Agent, "app/y.rb")
	u.as(access.Admin, "POST", "/api/v1/locks/clear", sent).want(http.StatusConflict, "refused").has("the-agent acquired a lock")
	u.ask("GET", "/api/v1/locks", nil).into(&locks)
	sent["seq"] = locks.Seq
	var cleared clearedLocks
	u.ask("POST", "/api/v1/locks/clear", sent).into(&cleared)
	if len(cleared.Freed) != 2 || len(cleared.Kept) != 0 {
		u.t.Errorf("%+v", cleared)
	}
}

func (u *tour) tourQueue() {
	u.t.Helper()
	q, err := job.Open(u.App)
	must(u.t, err)
	items, err := q.Enqueue(u.t.Context(), sched.ItemSpec{Workflow: "lint", Job: true, Command: []string{"true"}, By: lockkeeper.Actor{Name: "ann", Kind: lockkeeper.ActorPerson}})
	must(u.t, err)
	id := items[0].ID
	u.ask("GET", "/api/v1/items?status=queued", nil).has(id, `"lock_request":{"read_paths":[],"write_paths":[]}`)
	u.ask("GET", "/api/v1/items/"+id, nil).has(`"lint"`)
	u.ask("POST", "/api/v1/items/"+id+"/cancel", map[string]any{"reason": "planned twice"}).has("planned twice")
	u.as(access.Operator, "POST", "/api/v1/items/"+id+"/retry", map[string]any{"note": "x"}).want(http.StatusBadRequest, "input").has("note")
	u.ask("POST", "/api/v1/items/"+id+"/retry", nil).has(`"queued"`)
	u.as(access.Operator, "POST", "/api/v1/items/"+id+"/retry", nil).want(http.StatusConflict, "refused")
	u.ask("POST", "/api/v1/items/"+id+"/cancel", nil)
}

// idle waits until no run is active.
func (u *tour) idle() (now acts.Running) {
	u.t.Helper()
	for deadline := time.Now().Add(hung); ; time.Sleep(20 * time.Millisecond) {
		u.ask("GET", "/api/v1/run/state", nil).into(&now)
		if !now.Active {
			return now
		}
		if time.Now().After(deadline) {
			u.t.Fatalf("it runs and runs: %+v", now)
		}
	}
}

func (u *tour) tourRun() {
	u.t.Helper()
	u.as(access.Operator, "POST", "/api/v1/run/stop", nil).want(http.StatusConflict, "refused")
	u.as(access.Operator, "POST", "/api/v1/run/start", map[string]any{"plan": "../../etc/passwd"}).want(http.StatusBadRequest, "input")
	u.as(access.Operator, "POST", "/api/v1/run/start", map[string]any{"only": []string{"nobody"}}).want(http.StatusBadRequest, "input")
	u.ask("POST", "/api/v1/run/start", map[string]any{"only": []string{"blog/posts"}, "auto_decide": "impact>=medium,topics=reject,reviews", "slots": 2}).has(`"the-admin"`)
	if now := u.idle(); now.Error != "" || now.Outcome == nil || now.Outcome.Complete != 1 {
		u.t.Fatalf("%+v", now)
	}
	u.ask("GET", "/api/v1/run", nil).has("blog/posts")
	u.ask("GET", "/api/v1/board", nil).has("blog/posts")
	u.ask("GET", "/api/v1/timeline", nil)
	var done view.Items
	u.ask("GET", "/api/v1/items?status=completed&limit=1", nil).into(&done)
	u.ask("GET", "/api/v1/items/"+done.Items[0].ID, nil)
	u.ask("GET", "/api/v1/items/"+done.Items[0].ID+"/log", nil)
	u.ask("GET", "/api/v1/items/"+done.Items[0].ID+"/calls/1", nil).has(`"prompt"`)
	var landings view.Landings
	u.ask("GET", "/api/v1/landings", nil).into(&landings)
	if len(landings.Landings) < 2 {
		u.t.Fatalf("%+v", landings)
	}
	last := landings.Landings[0]
	u.ask("GET", fmt.Sprintf("/api/v1/landings/%d", last.Seq), nil).has(last.Paths[0])
	u.ask("GET", "/api/v1/units/blog/posts", nil).has("blog/posts")
	u.ask("GET", "/api/v1/diffs/blog/posts/b1", nil).has("b1")
	for _, unknown := range []string{"landings/1", "units/blog/nothing", "diffs/blog/posts/b77"} {
		u.as(access.Viewer, "GET", "/api/v1/"+unknown, nil).want(http.StatusNotFound)
	}
	u.as(access.Agent, "POST", fmt.Sprintf("/api/v1/landings/%d/undo", last.Seq), nil).want(http.StatusConflict, "refused")
	u.conforms(u.as(access.Operator, "POST", fmt.Sprintf("/api/v1/landings/%d/undo", last.Seq), nil)).has(last.Paths[0])
	u.as(access.Operator, "POST", fmt.Sprintf("/api/v1/landings/%d/undo", last.Seq), nil).want(http.StatusConflict)
	for _, l := range landings.Landings[1:] {
		if l.Batch != "" && l.Batch != last.Batch {
			u.ask("POST", "/api/v1/units/undo/"+l.Unit, map[string]any{"batch": l.Batch}).has(l.Batch)
			break
		}
	}
	u.ask("POST", "/pipeline/analyze/blog/comments", nil).has(`"phase":"analyze"`)
	u.ask("POST", "/api/v1/run/stop", map[string]any{"now": true})
	u.idle()
	u.ask("POST", "/analyze/blog/comments", nil).has("blog/comments")
	u.ask("POST", "/api/v1/run/stop", map[string]any{"now": true})
	u.idle()
	u.fails("accounts/sessions")
	var failures struct{ Causes []conduct.Cause }
	u.ask("GET", "/api/v1/failures", nil).into(&failures)
	cause := map[string]any{"cause": failures.Causes[0].ID, "was": 1}
	u.ask("POST", "/api/v1/failures/exclude", cause).has("excludes accounts/sessions from runs")
	u.as(access.Operator, "POST", "/api/v1/failures/retry", cause).want(http.StatusBadRequest, "input")
	u.ask("POST", "/api/v1/excluded/include", map[string]any{"names": []string{"accounts/sessions"}}).has("includes accounts/sessions")
	u.as(access.Operator, "POST", "/api/v1/failures/retry", map[string]any{"cause": cause["cause"], "was": 2}).want(http.StatusConflict, "refused")
	u.ask("POST", "/api/v1/failures/retry", cause).has("retries accounts/sessions")
	u.as(access.Operator, "POST", "/api/v1/items/"+failures.Causes[0].Failures[0].Item+"/cancel", nil).want(ok)
	u.ask("POST", "/api/v1/units/retry/accounts/sessions", map[string]any{"note": "look again"}).has("retries accounts/sessions")
	u.fails("accounts/registrations")
	var failed view.Items
	u.ask("GET", "/api/v1/items?status=error&limit=1", nil).into(&failed)
	u.ask("POST", "/api/v1/items/"+failed.Items[0].ID+"/retry", map[string]any{"note": "look again"}).has(`"queued"`)
	u.ask("POST", "/api/v1/pipeline/analyze/blog/comments", nil)
	u.ask("POST", "/api/v1/run/stop", map[string]any{"now": true})
	u.idle()
}

// fails makes the analysis of a unit fail: its agent has no script.
func (u *tour) fails(unit string) {
	u.t.Helper()
	script, _ := projecttest.Lookup(u.Env)(scripted.ScriptVariable)
	must(u.t, os.Rename(script, script+".away"))
	u.ask("POST", "/api/v1/pipeline/analyze/"+unit, nil)
	u.idle()
	must(u.t, os.Rename(script+".away", script))
}

func (u *tour) tourDecisions() {
	u.t.Helper()
	ctx := u.t.Context()
	b, _, _, err := conduct.OpenDocuments(u.App, flow.Controllers().Name)
	must(u.t, err)
	u.audited("blog/a", "Fix a", "Polish a", "Paint a", "Turn a")
	must(u.t, b.PutAnalysis(ctx, "blog/b", flow.Analysis{Purpose: "b", Behaviour: "b", Files: []string{}, Topics: []flow.Topic{{Slug: "one", Prompt: "one?"}, {Slug: "two", Prompt: "two?"}, {Slug: "three", Prompt: "three?"}}}, nil))
	u.planned("blog/c", "app/models/c.rb")
	decide := func(word string, body map[string]any) answer {
		u.t.Helper()
		return u.ask("POST", "/api/v1/decide/"+word, body)
	}
	decide("todo", map[string]any{"refs": []string{"item blog/a/i1"}, "notes": []string{"soon"}}).has("will be done")
	decide("defer", map[string]any{"refs": []string{"item blog/a/i2"}})
	decide("reject", map[string]any{"refs": []string{"item blog/a/i3"}})
	decide("undo", map[string]any{"refs": []string{"item blog/a/i1"}}).has("is open again")
	decide("items", map[string]any{"choices": []map[string]any{{"ref": "item blog/a/i1", "decision": "TODO"}}})
	decide("answer", map[string]any{"refs": []string{"topic blog/b/one"}, "text": "Found elsewhere."}).has("is answered")
	u.as(access.Operator, "POST", "/api/v1/decide/api", map[string]any{"refs": []string{"topic blog/b/two"}}).want(http.StatusConflict, "refused").has("ANTHROPIC_API_KEY", `"refused":[`)
	u.as(access.Operator, "POST", "/api/v1/decide/reject", map[string]any{"refs": []string{"topic blog/b/two"}}).want(http.StatusBadRequest, "input").has("note")
	u.ask("GET", "/api/v1/waiting?limit=2", nil).has(`"next":"`)
	u.ask("GET", "/api/v1/waiting/topic/blog/b/two", nil).has("two?")

	edit := func(act string, body map[string]any) {
		u.t.Helper()
		u.ask("POST", "/api/v1/units/"+act+"/blog/c", body)
	}
	edit("move", map[string]any{"item": "i2", "to": "b1"})
	edit("split", map[string]any{"batch": "b1", "items": []string{"i2"}})
	plan, err := b.Unit(ctx, "blog/c")
	must(u.t, err)
	first, second := plan.Plan.Batches[0].ID, plan.Plan.Batches[1].ID
	edit("targets", map[string]any{"batch": first, "paths": []string{"app/models/c.rb", "app/models/d.rb"}})
	u.as(access.Operator, "POST", "/api/v1/units/targets/blog/c", map[string]any{"batch": first, "paths": []string{"lib/x.rb"}}).want(http.StatusConflict)
	edit("merge", map[string]any{"into": first, "from": second})
	decide("approve", map[string]any{"refs": []string{"plan blog/c"}})

	files := func(text string) []flow.File {
		sum, err := b.Keep(ctx, "blog/c", first, strings.NewReader(text))
		must(u.t, err)
		return []flow.File{{Path: "app/models/c.rb", New: lockkeeper.Version{Kind: lockkeeper.File, Mode: 0o644, Sum: sum}}}
	}
	gap := func(path string) flow.Gap {
		return flow.Gap{Path: path, Reason: "not declared", Phase: "apply", Planned: "batch_plan", At: time.Now()}
	}
	reviewed := func(files []flow.File, gaps ...flow.Gap) {
		projecttest.Verified(u.t, b, "blog/c", first, files, gaps...)
		must(u.t, b.PutReview(ctx, "blog/c", first, files))
	}
	reviewed(files("one\n"), gap("app/e.rb"), gap("app/f.rb"))
	edit("comment", map[string]any{"batch": first, "path": "app/models/c.rb", "line": 1, "text": "say why"})
	decide("return", map[string]any{"refs": []string{"review blog/c/" + first}, "notes": []string{"shorter"}}).has("is returned")
	reviewed(files("two\n"))
	decide("follow-up", map[string]any{"refs": []string{"gap blog/c/" + first + "/1"}}).has("is followed up")
	decide("dismiss", map[string]any{"refs": []string{"gap blog/c/" + first + "/2"}})
	for _, word := range []string{progress.Again, progress.Without, progress.Stop} {
		id, err := b.AskFailure(ctx, "blog/c", progress.CommonFailure{Run: "r1", Parts: []string{"TestX " + word}, Phase: "test", Command: "make", Batches: []string{"blog/c/" + first}}, "ada")
		must(u.t, err)
		u.ask("GET", "/api/v1/waiting/failure/blog/c/"+id, nil).has("TestX " + word)
		decide(word, map[string]any{"refs": []string{"failure blog/c/" + id}}).has("is answered")
	}
}

func (u *tour) tourUnits() {
	u.t.Helper()
	u.ask("POST", "/api/v1/units/add-item/blog/a", map[string]any{"description": "Log it", "impact": "high", "effort": "low"}).has("is added")
	u.ask("POST", "/api/v1/units/question/blog/a", map[string]any{"text": "Who calls it?"}).has("question-1")
	u.as(access.Operator, "POST", "/api/v1/units/question/blog/a", map[string]any{"text": " "}).want(http.StatusBadRequest, "input")
	u.as(access.Operator, "POST", "/api/v1/units/add-item/blog/a", map[string]any{"description": "Log it", "impact": "huge", "effort": "low"}).want(http.StatusBadRequest, "input")
	u.ask("POST", "/api/v1/units/redo/blog/a", map[string]any{"phase": "synthesize"}).has("repeats the phase")
	u.ask("POST", "/api/v1/units/exclude/blog/posts?flow=screens", map[string]any{"screen": "Post List", "why": "it is gone"}).has("excludes screen")
	u.ask("POST", "/api/v1/units/include/blog/posts?flow=screens", map[string]any{"screen": "Post List"})
	u.as(access.Operator, "POST", "/api/v1/units/include/blog/posts?flow=controllers", map[string]any{"screen": "Post List"}).want(http.StatusBadRequest, "input")
	u.as(access.Operator, "POST", "/api/v1/units/include/blog/posts?colour=red", map[string]any{"screen": "Post List"}).want(http.StatusBadRequest, "input")

	// An item that was rejected in one run does not appear in the next run unless it is reopened.
	u.audited("blog/z", "Fix z", "Polish z")
	u.ask("POST", "/api/v1/decide/reject", map[string]any{"refs": []string{"item blog/z/i1", "item blog/z/i2"}, "only": true})
	u.ask("POST", "/api/v1/units/redo/blog/z", map[string]any{"phase": "analyze"})
	u.audited("blog/z", "Fix z", "Polish z")
	u.ask("POST", "/api/v1/units/reenable/blog/z", map[string]any{"description": "Fix z"}).has("re-enables")
}

func (u *tour) tourTree() {
	u.t.Helper()
	g := u.taken(access.Agent, "app/models/new.rb")
	change := func(path, text string) map[string]any {
		return map[string]any{"grant": g.ID, "token": g.Token, "changes": []map[string]any{{"path": path, "text": text}}}
	}
	u.ask("POST", "/api/v1/write", change("app/models/new.rb", "class New; end\n")).has(`"landed":true`)
	text, err := os.ReadFile(filepath.Join(u.App.Root.Dir(), "app/models/new.rb"))
	if err != nil || string(text) != "class New; end\n" {
		u.t.Errorf("%q %v", text, err)
	}
	u.as(access.Agent, "POST", "/api/v1/write", change("app/models/other.rb", "x")).want(http.StatusConflict, "violation").has("coverage")
	u.as(access.Agent, "POST", "/api/v1/write", change("app/models/third.rb", "y")).want(http.StatusConflict, "violation")
	wrong := change("app/models/new.rb", "x")
	wrong["token"] = "wrong"
	u.as(access.Agent, "POST", "/api/v1/write", wrong).want(http.StatusConflict)
	u.as(access.Agent, "POST", "/api/v1/grants/"+g.ID+"/release", map[string]any{"token": g.Token}).want(ok)
	must(u.t, os.MkdirAll(filepath.Join(u.App.Root.Dir(), "app/models/parts"), 0o755), os.Mkdir(filepath.Join(u.App.Root.Dir(), "out"), 0o755))
	u.ask("POST", "/api/v1/grants", map[string]any{"write": []string{"app/models/parts/"}, "policy": "dal"}).into(&g)
	u.ask("POST", "/api/v1/replace-dir", map[string]any{"grant": g.ID, "token": g.Token, "dir": "app/models/parts/current", "from": "out"}).has(`"committed"`)
	u.as(access.Agent, "POST", "/api/v1/grants/"+g.ID+"/release", map[string]any{"token": g.Token}).want(ok)
	var kept rescuedPage
	u.ask("GET", "/api/v1/rescue", nil).into(&kept)
	ids := map[string]string{}
	for _, e := range kept.Entries {
		ids[e.Path] = e.ID
	}
	u.ask("GET", "/api/v1/rescue/"+ids["app/models/other.rb"], nil).has("app/models/other.rb")
	u.ask("POST", "/api/v1/rescue/"+ids["app/models/other.rb"]+"/land", nil).has("app/models/other.rb")
	third := ids["app/models/third.rb"]
	u.ask("GET", "/api/v1/rescue?where=path%3Dapp/models/third.rb", nil).has("unchanged")
	u.ask("POST", "/api/v1/rescue/land", map[string]any{"where": "path=app/models/none.rb"}).has(`"landed"`)
	_, err = u.App.Shelf().Put(u.t.Context(), rescue.Entry{Kind: rescue.Gap, Path: "app/models/none.rb", Holder: "another", Mode: 0o644, Reason: "coverage: no lock"}, strings.NewReader("x"))
	must(u.t, err)
	u.as(access.Agent, "POST", "/api/v1/rescue/land", map[string]any{"where": "path=app/models/none.rb"}).want(ok).has(`"kept":[]`)
	u.as(access.Operator, "POST", "/api/v1/rescue/drop", map[string]any{"where": "path=app/models/none.rb", "confirm": 1}).want(ok)
	u.as(access.Operator, "POST", "/api/v1/rescue/drop", map[string]any{"where": "all", "confirm": 99}).want(http.StatusBadRequest, "input").has("confirm")
	u.ask("POST", "/api/v1/rescue/drop", map[string]any{"where": "path=app/models/none.rb", "confirm": 0}).has(`"dropped"`)
	u.as(access.Operator, "POST", "/api/v1/rescue/"+third+"/drop", nil).want(http.StatusBadRequest, "input").has("confirm")
	u.ask("POST", "/api/v1/rescue/"+third+"/drop", map[string]any{"confirm": third})
	u.as(access.Viewer, "GET", "/api/v1/rescue/"+third, nil).want(http.StatusNotFound, codeNotFound)
}

func (u *tour) tourRest() {
	u.t.Helper()
	for _, path := range []string{"/state", "/api/v1/state", "/api/v1/now?since=3", "/api/v1/locks", "/api/v1/nodes", "/api/v1/me", "/healthz", "/readyz", "/metrics", "/login"} {
		u.ask("GET", path, nil)
	}
	var state map[string]json.RawMessage
	u.ask("GET", "/state", nil).into(&state)
	for _, name := range []string{"phase", "controllers", "workflows", "locks", "cost"} { // SW-69 PL-79
		if state[name] == nil {
			u.t.Errorf("the state has no %s", name)
		}
	}
	var locks map[string]json.RawMessage
	must(u.t, json.Unmarshal(state["locks"], &locks))
	for _, name := range []string{"active_grants", "queue_depth", "active_items", "blocked_items", "gaps"} { // GP-9
		if locks[name] == nil {
			u.t.Errorf("the locks have no %s", name)
		}
	}
	l := u.listen()
	<-l.events
	l.cancel()
	u.seen[wayOf(u.route("GET", "/events"), ok)] = true // the stream does not end, so conforms cannot read it
	u.conforms(u.send("GET", "/login/login.css", nil).want(ok))
	u.conforms(u.as(access.Agent, "POST", "/logout", nil).want(http.StatusSeeOther))
	form := header("Content-Type", "application/x-www-form-urlencoded")
	u.conforms(u.send("POST", "/login", "secret="+u.tokens[access.Viewer], form, u.sameOrigin).want(http.StatusSeeOther))
	wrong := func() answer { return u.conforms(u.send("POST", "/login", "secret=wrong", form, u.sameOrigin)) }
	for wrong().status != http.StatusTooManyRequests {
	}
}

// tourPages requests every page and submits every form empty.
func (u *tour) tourPages() {
	u.t.Helper()
	for i := range u.server.table {
		rt := &u.server.table[i]
		if !ofDashboard(rt) {
			continue
		}
		named := strings.Contains(rt.pattern, "{") && !strings.HasSuffix(rt.pattern, "{$}")
		address := wildcard.ReplaceAllString(strings.TrimSuffix(rt.pattern, "{$}"), "x")
		a := u.as(access.Admin, rt.method, address, nil, header("Content-Type", "application/x-www-form-urlencoded"))
		switch is := a.header.Get("Content-Type"); {
		case a.status == http.StatusNotFound && named, a.status == http.StatusSeeOther: // x does not exist, or the form redirects to the page
		case a.status == http.StatusNotFound, a.status >= http.StatusInternalServerError, !strings.HasPrefix(is, mediaPage):
			u.t.Errorf("%s: %d %s %.600s", a.asked, a.status, is, a.body)
		}
		if rt.method == http.MethodGet && !named {
			u.conforms(a.want(ok))
		}
	}
}
