package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/job"
	"lockkeeper/internal/project/projecttest"
	"lockkeeper/internal/surface/access"
	"lockkeeper/internal/surface/feed"
	"lockkeeper/sched"
)

func TestMain(m *testing.M) { projecttest.Main(m) }

var must = projecttest.Must

// real is the dashboard of the sample application with scripted agents.
type real struct {
	*testing.T
	*Dashboard
	*projecttest.Codebase
}

func newReal(t *testing.T) *real {
	t.Helper()
	r := &real{T: t, Codebase: projecttest.Sample(t, projecttest.Options{Run: "  review: risky\n"}).Codebase(t)}
	var err error
	r.Dashboard, err = New(Options{App: r.App, View: r.View, Runs: r.Runs, People: r.People, Failed: func(err error) { t.Error(err) }})
	must(t, err)
	return r
}

// page requests a page and requires success.
func (r *real) page(address string) *element {
	r.Helper()
	w := get(r.T, r.Dashboard, access.Admin, address)
	if w.Code == http.StatusFound { // an address of an earlier version
		w = get(r.T, r.Dashboard, access.Admin, w.Header().Get("Location"))
	}
	if w.Code != http.StatusOK {
		r.Fatalf("%s: %d %s", address, w.Code, read(r.T, w.Body.String()).words())
	}
	page := read(r.T, w.Body.String())
	checkSafe(r.T, w.Body.String(), page)
	checkLeads(r.T, r.Dashboard, page, access.Admin)
	checkUsable(r.T, page)
	return page
}

// press submits a form as a browser does, with some fields filled in.
func (r *real) press(form *element, word string, filled ...string) *httptest.ResponseRecorder {
	r.Helper()
	values := url.Values{}
	for _, f := range form.fields(word) {
		values.Add(f[0], f[1])
	}
	for i := 0; i < len(filled); i += 2 {
		values.Set(filled[i], filled[i+1])
	}
	ask := httptest.NewRequest(http.MethodPost, form.attr["action"], strings.NewReader(values.Encode()))
	ask.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return send(r.T, r.Dashboard, access.Admin, ask, asPart)
}

// done submits a form, requires success, and returns the reported result.
func (r *real) done(form *element, word string, filled ...string) string {
	r.Helper()
	if form == nil {
		r.Fatalf("there is no form to press %s in", word)
	}
	w := r.press(form, word, filled...)
	text := read(r.T, w.Body.String()).words()
	if w.Code != http.StatusOK || w.Header()[nextHeader] == nil {
		r.Fatalf("%s %s: %d %s", form.attr["action"], word, w.Code, text)
	}
	return text
}

// refused submits a form, requires a refusal, and returns the reported reason.
func (r *real) refused(form *element, word string, status int, filled ...string) string {
	r.Helper()
	w := r.press(form, word, filled...)
	text := read(r.T, w.Body.String()).words()
	if w.Code != status || w.Header()[nextHeader] != nil {
		r.Fatalf("%s %s: %d instead of %d: %s", form.attr["action"], word, w.Code, status, text)
	}
	return text
}

// formOf returns the form of a page with an action and with the given fields.
func formOf(page *element, action string, has ...string) *element {
	for _, f := range page.all("form") {
		if f.attr["action"] != action {
			continue
		}
		fits := len(has) == 0
		for _, field := range f.fields("") {
			fits = fits || field[0] == has[0] && strings.Contains(field[1], has[1])
		}
		for _, b := range f.all("button") {
			fits = fits || len(has) > 0 && b.attr["name"] == has[0] && b.attr["value"] == has[1]
		}
		if fits {
			return f
		}
	}
	return nil
}

// decide answers every decision on the page Decide until the run has ended.
func (r *real) decide(ctx context.Context) (answered map[string]int) {
	r.Helper()
	f, err := feed.Open(ctx, r.App.Store, feed.Options{})
	must(r.T, err)
	defer func() { must(r.T, f.Close()) }()
	answered = map[string]int{}
	after := uint64(0)
	for {
		page := r.page("/decide")
		switch {
		case formOf(page, "/do/answer", "word", "answer") != nil:
			r.done(formOf(page, "/do/answer", "word", "answer"), "answer", "text", "Keyset pagination.\nMost of them.")
			answered["topic"]++
		case formOf(page, "/do/answer", "word", "follow-up") != nil:
			r.done(formOf(page, "/do/answer", "word", "follow-up"), "dismiss")
			answered["gap"]++
		case formOf(page, "/do/answer", "word", "return") != nil:
			r.done(formOf(page, "/do/answer", "word", "return"), "approve")
			answered["review"]++
		case formOf(page, "/do/answer", "word", "approve") != nil:
			r.done(formOf(page, "/do/answer", "word", "approve"), "approve")
			answered["plan"]++
		case oneItem(page) != nil:
			word := "todo"
			if strings.Contains(page.all("article")[0].words(), "single-page front end") {
				word = "reject"
			}
			r.done(oneItem(page), word)
			answered["item"]++
		case !r.Runs.Now().Active:
			return answered
		default:
			events, err := f.Next(ctx, after)
			must(r.T, err)
			after = events[len(events)-1].Seq
		}
	}
}

// oneItem returns the form of the selected item, not the form for all items.
func oneItem(page *element) *element {
	for _, f := range page.all("form") {
		for _, b := range f.all("button") {
			if f.attr["class"] == "answer" && b.attr["value"] == "todo" {
				return f
			}
		}
	}
	return nil
}

// A person can start a flow, decide it, view it on every page and undo it, using only the pages.
// shows: PL-19 PL-25 PL-94 GP-25
func TestFlowByPages(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	r := newReal(t)
	for _, p := range pages() {
		if !strings.Contains(strings.TrimSuffix(p.pattern, "{$}"), "{") {
			r.page(strings.TrimSuffix(p.pattern, "{$}"))
		}
	}
	if said := r.done(formOf(r.page("/"), "/do/start"), "", "flow", "controllers", "slots", "3"); !strings.Contains(said, "controllers runs") {
		t.Error(said)
	}
	answered := r.decide(ctx)
	for _, kind := range []string{"topic", "item", "plan", "gap"} {
		if answered[kind] == 0 {
			t.Errorf("nothing of the kind %s was to be decided: %v", kind, answered)
		}
	}
	board := r.page("/board")
	if n := strings.Count(board.words(), "complete"); n < 4 {
		t.Errorf("the board says complete %d times: %s", n, board.words())
	}
	items, seen := 0, map[string]bool{}
	for _, a := range r.page("/items").all("a") {
		if strings.HasPrefix(a.attr["href"], "/item/") {
			item := r.page(a.attr["href"])
			if strings.Contains(a.attr["href"], "%2F") || strings.Contains(a.attr["href"], "id=") && items == 0 {
				t.Errorf("%s is not readable", a.attr["href"])
			}
			r.page(strings.Replace(a.attr["href"], "/item/", "/log/", 1))
			for _, link := range item.all("a") {
				if href := link.attr["href"]; strings.HasPrefix(href, "/call/") || strings.HasPrefix(href, "/unit/") || strings.HasPrefix(href, "/landing/") {
					address, _, _ := strings.Cut(href, "#")
					seen[address] = true
				}
			}
			items++
		}
	}
	if items < 10 {
		t.Errorf("%d pieces of work are listed", items)
	}
	for _, address := range []string{"/", "/locks", "/timeline", "/rescue", "/nodes", "/audit", "/decide?ref=plan+blog/posts", "/diff/blog/posts/b1",
		"/item/j1", "/item/j1/log", "/item/j1/call/1", "/item/controllers%2Fblog%252Fposts%2Fanalyze", "/decide?ref=plan+blog%2Fposts"} {
		r.page(address)
	}
	for address := range seen {
		r.page(address)
	}
	if unit := r.page("/unit/blog/posts").words(); !strings.Contains(unit, "apply") || !strings.Contains(unit, "Landings") || len(seen) < 10 {
		t.Errorf("the page of a unit, and %d links: %s", len(seen), unit)
	}
	if w := get(t, r.Dashboard, access.Viewer, "/unit/blog/nothing"); w.Code != http.StatusNotFound {
		t.Errorf("an unknown unit: %d", w.Code)
	}
	run := r.page("/run")
	landing := formOf(run, "/do/undo")
	said := r.done(landing, "")
	if !strings.Contains(said, "restored") {
		t.Error(said)
	}
	if again := r.refused(landing, "", http.StatusConflict); !strings.Contains(again, "undone") {
		t.Errorf("undone twice: %s", again)
	}
	if text := r.page("/run").words(); !strings.Contains(text, "undone by") {
		t.Error("the page does not say that it is undone")
	}
}

// An answer applies only to the version that the person saw. If it changed, the page says so.
func TestStalePage(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	r := newReal(t)
	_, err := r.Runs.Start(ctx, conduct.Options{Flow: "controllers", Only: []string{"blog/posts"}, Auto: "topics=reject", Wait: true, By: lockkeeper.Actor{Name: "ben", Kind: lockkeeper.ActorPerson}})
	must(t, err)
	f, err := feed.Open(ctx, r.App.Store, feed.Options{})
	must(t, err)
	defer func() { must(t, f.Close()) }()
	var page *element
	for after := uint64(0); page == nil || oneItem(page) == nil; {
		page = r.page("/decide")
		if oneItem(page) == nil {
			events, err := f.Next(ctx, after)
			must(t, err)
			after = events[len(events)-1].Seq
		}
	}
	item := oneItem(page)
	if said := r.done(item, "todo"); !strings.Contains(said, "will be done") || !strings.Contains(said, "Withdraw") {
		t.Error(said)
	}
	if why := r.refused(item, "reject", http.StatusConflict); !strings.Contains(why, "is not what you saw") {
		t.Error(why)
	}
	if why := r.refused(item, "dance", http.StatusBadRequest); why == "" {
		t.Error("an unknown answer is refused without a word")
	}
	r.done(formOf(r.page("/decide?ref=plan+blog%2Fposts"), "/do/add-item"), "", "description", "Say hello", "rationale", "")
	if said := r.done(formOf(r.page("/decide?ref=plan+blog%2Fposts"), "/do/question"), "", "text", "Who calls it?"); !strings.Contains(said, "question-1") {
		t.Error(said)
	}
	if page := r.page("/decide?ref=plan+blog%2Fposts").words(); !strings.Contains(page, "Who calls it?") || !strings.Contains(page, "The next run answers it.") {
		t.Error("the page does not show the question")
	}
	if said := r.done(formOf(r.page("/"), "/do/stop"), "", "now", "1"); !strings.Contains(said, "has stopped") {
		t.Error(said)
	}
}

// On the pages, an admin revokes locks of a holder that the page shows. Queued work is canceled and
// retried, and rescued changes are landed or dropped.
// shows: LM-22 LM-23 LM-24 CF-14
func TestActsOnLocksAndWork(t *testing.T) {
	ctx := t.Context()
	r := newReal(t)
	hold := func(holder, path string) {
		l, err := r.App.Resolve(lockkeeper.Write, filepath.Join(r.Root, path))
		must(t, err)
		_, err = r.App.Locks.TryAcquire(ctx, lockkeeper.Request{Holder: holder, Locks: []lockkeeper.Lock{l}})
		must(t, err)
	}
	const file = "app/models/blog/post.rb"
	hold("otter", file)
	take := formOf(r.page("/locks"), "/do/force-release")
	if why := r.refused(take, "", http.StatusBadRequest); !strings.Contains(why, "reason") {
		t.Error(why)
	}
	if why := r.refused(take, "", http.StatusConflict, "reason", "x", "holder", "another"); !strings.Contains(why, "held by otter") {
		t.Error(why)
	}
	if said := r.done(take, "", "reason", "it is at the vet"); !strings.Contains(said, "otter") {
		t.Error(said)
	}
	hold("otter", file)
	clear := formOf(r.page("/locks"), "/do/clear-locks")
	if why := r.refused(clear, "", http.StatusConflict, "reason", "x", "confirm", "no"); !strings.Contains(why, "no lock was changed") {
		t.Error(why)
	}
	hold("badger", "app/models/blog/comment.rb")
	if why := r.refused(clear, "", http.StatusConflict, "reason", "x", "confirm", "clear"); !strings.Contains(why, "badger") {
		t.Error(why)
	}
	if said := r.done(formOf(r.page("/locks"), "/do/clear-locks"), "", "reason", "the power failed", "confirm", "clear"); !strings.Contains(said, "2 grants freed. All locks are cleared.") {
		t.Error(said)
	}
	if text := r.page("/locks").words(); !strings.Contains(text, "ready for concurrent editing") {
		t.Error(text)
	}

	q, err := job.Open(r.App)
	must(t, err)
	queued, err := q.Enqueue(ctx, sched.ItemSpec{Workflow: "make", Command: []string{"true"}, By: lockkeeper.Actor{Name: "ann", Kind: lockkeeper.ActorPerson}})
	must(t, err)
	address := "/item/" + queued[0].ID
	r.done(formOf(r.page(address), "/do/cancel"), "", "reason", "planned twice")
	if text := r.page(address).words(); !strings.Contains(text, "planned twice") {
		t.Error(text)
	}
	if said := r.done(formOf(r.page(address), "/do/retry"), ""); !strings.Contains(said, "queued again") {
		t.Error(said)
	}

	for _, path := range []string{file, "app/models/blog/comment.rb"} {
		g, err := r.App.Gate()
		must(t, err)
		if _, err := g.Write(ctx, nil, path, []byte("# mine\n")); err == nil {
			t.Fatal("a write without a lock is let through")
		}
	}
	shelf := r.page("/rescue")
	for _, a := range shelf.all("a") {
		if strings.HasPrefix(a.attr["href"], "/rescue/") {
			if text := r.page(a.attr["href"]).words(); !strings.Contains(text, "# mine") {
				t.Error(text)
			}
		}
	}
	if said := r.done(formOf(shelf, "/do/land"), ""); !strings.Contains(said, "has landed") {
		t.Error(said)
	}
	if said := r.done(formOf(r.page("/rescue"), "/do/drop"), ""); !strings.Contains(said, "is deleted") {
		t.Error(said)
	}
	if text := r.page("/rescue").words(); !strings.Contains(text, "Nothing is kept.") {
		t.Error(text)
	}
	r.rescuesMany()
	if text := r.page("/audit").words(); !strings.Contains(text, "the power failed") {
		t.Error(text)
	}
}

// rescuesMany lands and drops kept changes in groups, and resolves one that conflicts.
func (r *real) rescuesMany() {
	r.T.Helper()
	const file = "app/models/blog/many.rb"
	at := filepath.Join(r.Root, file)
	write := func(text string) { must(r.T, os.WriteFile(at, []byte(text), 0o644)) }
	refuse := func(text string) {
		g, err := r.App.Gate()
		must(r.T, err)
		if _, err := g.Write(r.T.Context(), nil, file, []byte(text)); err == nil {
			r.T.Fatal("a write without a lock is let through")
		}
	}
	write("1\n2\n3\n4\n")
	refuse("top\n1\n2\n3\n4\n")
	refuse("1\n2\n3\n4\nbottom\n")
	write("1\n2\n3\n4\nlater\n")
	shelf := r.page("/rescue")
	if text := shelf.words(); !strings.Contains(text, "2 changes") || !strings.Contains(text, "applies cleanly") || !strings.Contains(text, "conflicts") {
		r.T.Error(text)
	}
	if said := r.done(formOf(shelf, "/do/land-all"), ""); !strings.Contains(said, "1 kept change landed, 1 stayed kept.") {
		r.T.Error(said)
	}
	for _, a := range r.page("/rescue").all("a") {
		if strings.HasPrefix(a.attr["href"], "/rescue/") {
			resolve := r.page(a.attr["href"])
			if text := resolve.words(); !strings.Contains(text, "Conflict at line") {
				r.T.Error(text)
			}
			if said := r.done(formOf(resolve, "/do/land"), "", "resolved", "all\r\nof it\r\n"); !strings.Contains(said, "has landed") {
				r.T.Error(said)
			}
		}
	}
	if text, err := os.ReadFile(at); err != nil || string(text) != "all\nof it\n" {
		r.T.Errorf("%q, %v", text, err)
	}
	refuse("1\n")
	if said := r.done(formOf(r.page("/rescue?where=path%3Dapp/**"), "/do/drop-all"), ""); !strings.Contains(said, "1 kept change deleted.") {
		r.T.Error(said)
	}
}
