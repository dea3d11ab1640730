package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/encoding/httpstatus"
	"lockkeeper/internal/surface/access"
)

// A pageKind is one page of the dashboard: its query and its template.
type pageKind struct {
	name     string // of its template
	pattern  string
	title    string
	question string
	key      string // g and then this one; empty: it is reached from other pages
	topics   string // what events have to be about for it to be looked at anew
	bare     bool   // a part of another page: it comes without what stands around a page
	answer   func(d *Dashboard, w http.ResponseWriter, r *http.Request) (any, error)
}

// pages are all pages, those of the menu in its order.
func pages() []pageKind {
	return []pageKind{
		{name: "now", pattern: "/{$}", title: "Now", question: "what needs you, what is stuck, what changed, what it costs", key: "n", topics: "locks queue gate people", answer: (*Dashboard).nowPage},
		{name: "decide", pattern: "/decide", title: "Decide", question: "what to do, and what not", key: "d", topics: "queue gate people", answer: (*Dashboard).decidePage},
		{name: "board", pattern: "/board", title: "Board", question: "where everything is", key: "b", topics: "queue gate people", answer: (*Dashboard).boardPage},
		{name: "items", pattern: "/items", title: "Work", question: "everything that was queued", key: "w", topics: "queue", answer: (*Dashboard).itemsPage},
		{name: "locks", pattern: "/locks", title: "Locks", question: "who holds what, and who waits for whom", key: "l", topics: "locks queue gate", answer: (*Dashboard).locksPage},
		{name: "timeline", pattern: "/timeline", title: "Timeline", question: "where the time went", key: "t", topics: "queue gate", answer: (*Dashboard).timelinePage},
		{name: "run", pattern: "/run", title: "Run", question: "what was done, what it cost, what was refused", key: "r", topics: "queue gate people", answer: (*Dashboard).runPage},
		{name: "rescue", pattern: "/rescue", title: "Rescue", question: "what could not land, and is kept", key: "e", topics: "gate", answer: (*Dashboard).rescuePage},
		{name: "nodes", pattern: "/nodes", title: "Nodes", question: "who takes part, and what is enforced", key: "o", topics: "locks queue", answer: (*Dashboard).nodesPage},
		{name: "audit", pattern: "/audit", title: "Audit", question: "who did what, and when", key: "a", topics: "locks queue gate people", answer: (*Dashboard).auditPage},
		{name: "item", pattern: "/item/{id}", title: "Item", question: "why it is where it is, and what can be done about it", topics: "queue gate locks people", answer: (*Dashboard).itemPage},
		{name: "item-log", pattern: "/item/{id}/log", title: "Log", question: "what the agent or command of an item says", bare: true, answer: (*Dashboard).itemPage},
		{name: "kept", pattern: "/rescue/{id}", title: "Rescue", question: "what it would change", topics: "gate", answer: (*Dashboard).keptPage},
	}
}

// topics says what each kind of event is about. Of a kind that is not in it everything is
// looked at anew.
var topics = map[lockkeeper.EventKind]string{
	lockkeeper.EventAcquired: "locks queue", lockkeeper.EventReleased: "locks queue", lockkeeper.EventRecovered: "locks queue",
	lockkeeper.EventExpired: "locks queue", lockkeeper.EventForceReleased: "locks queue", lockkeeper.EventRecoverFailed: "locks queue",
	lockkeeper.EventDenied: "locks", lockkeeper.EventWaiting: "locks", lockkeeper.EventWithdrawn: "locks", lockkeeper.EventTimedOut: "locks",
	lockkeeper.EventRenewFailed: "locks", lockkeeper.EventUpgraded: "locks", lockkeeper.EventUpgradeDenied: "locks",
	lockkeeper.EventExtended: "locks", lockkeeper.EventExtendDenied: "locks", lockkeeper.EventRevoking: "locks gate",
	lockkeeper.EventLanded: "gate", lockkeeper.EventUndone: "gate", lockkeeper.EventFinished: "gate", lockkeeper.EventCleared: "gate",
	lockkeeper.EventQueued: "queue", lockkeeper.EventBlocked: "queue locks", lockkeeper.EventEscalated: "queue locks", lockkeeper.EventFailed: "queue", lockkeeper.EventRequeued: "queue",
	lockkeeper.EventDecided: "people", lockkeeper.EventRefused: "people", lockkeeper.EventEpoch: "locks queue gate people",
	lockkeeper.EventGap: "locks queue gate people", // which the stream also calls it where the log has forgotten some
}

// frame is what stands around a page.
type frame struct {
	Title    string
	Heading  string
	Question string
	Name     string // of the page
	Live     string // the topics it follows
	Menu     []menuEntry
	Codebase string
	Person   access.Person
	Known    bool // Needs and Seq are
	Needs    int  // how much waits for a person
	Seq      uint64
	Now      string
	Topics   string
	Body     any
}

type menuEntry struct {
	Title, URL, Key string
	Here            bool
}

// frameOf begins the frame of a page, without asking anything that can fail.
func (d *Dashboard) frameOf(r *http.Request, p pageKind) *frame {
	who, _ := access.Who(r.Context())
	kinds, err := json.Marshal(topics)
	if err != nil { // strings alone
		d.failed(err)
	}
	f := &frame{Heading: p.title, Question: p.question, Name: p.name, Live: p.topics, Codebase: d.name, Person: who, Now: d.now().UTC().Format(time.RFC3339Nano), Topics: string(kinds)}
	for _, other := range pages() {
		if other.key != "" {
			f.Menu = append(f.Menu, menuEntry{Title: other.title, URL: strings.TrimSuffix(other.pattern, "{$}"), Key: other.key, Here: other.name == p.name})
		}
	}
	return f
}

// ask has a frame know how much waits for a person, and up to where the log is shown.
func (d *Dashboard) ask(r *http.Request, f *frame) error {
	queue, err := d.view.Decisions(r.Context(), "")
	if err == nil {
		f.Known, f.Seq, f.Needs = true, queue.Seq, len(queue.Open)
	}
	return err
}

// page answers with a page, or with its inner part when the page asks for that itself.
func (d *Dashboard) page(w http.ResponseWriter, r *http.Request, p pageKind) {
	f := d.frameOf(r, p)
	// Asked first, so that the page knows nothing older than its Seq says.
	err := d.ask(r, f)
	if err == nil {
		f.Body, err = p.answer(d, w, r)
	}
	if err != nil {
		d.trouble(w, r, err)
		return
	}
	if titled, ok := f.Body.(interface{ heading() string }); ok {
		f.Heading = titled.heading()
	}
	name := "frame"
	switch {
	case isPart(r) && p.bare:
		name = p.name
	case isPart(r):
		name = "part"
	}
	d.render(w, r, http.StatusOK, name, f)
}

// isPart reports whether a page asks for its inner part.
func isPart(r *http.Request) bool { return r.Header.Get("HX-Request") == "true" }

// render sends a template as it is for the role of who asked.
func (d *Dashboard) render(w http.ResponseWriter, r *http.Request, status int, name string, data any) {
	if f, ok := data.(*frame); ok {
		f.Title = f.Heading + " · " + f.Codebase
		if f.Needs > 0 {
			f.Title = fmt.Sprintf("(%d) %s", f.Needs, f.Title)
		}
	}
	who, _ := access.Who(r.Context())
	set, ok := d.pages[who.Role]
	if !ok {
		set = d.pages[access.Viewer]
	}
	var page bytes.Buffer
	if err := set.ExecuteTemplate(&page, name, data); err != nil {
		d.failed(fmt.Errorf("page %s: %w", r.URL.Path, err))
		http.Error(w, "this page could not be made; the log of the server says why", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Vary", "HX-Request")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(legible(page.String()))) // a browser that is gone needs no answer
}

// templates is what pages are made of, for one role.
type templates = template.Template

// parse parses the templates once for each role, so that pages offer only permitted acts.
func (d *Dashboard) parse() (map[access.Role]*templates, error) {
	sets := map[access.Role]*templates{}
	for _, role := range []access.Role{access.Viewer, access.Operator, access.Admin} {
		may := func(needed access.Role) bool { return role.Meets(access.Need{AtLeast: needed}) }
		set, err := template.New("").Funcs(d.functions()).Funcs(template.FuncMap{"may": may}).ParseFS(embedded, "templates/*.html")
		if err != nil {
			return nil, err
		}
		sets[role] = set
	}
	return sets, nil
}

// problem is an answer that is not what was asked for.
type problem struct {
	What string
	Next string
}

// trouble answers that something could not be shown.
func (d *Dashboard) trouble(w http.ResponseWriter, r *http.Request, err error) {
	status := httpstatus.Of(err)
	if status >= http.StatusInternalServerError && r.Context().Err() == nil {
		d.failed(fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err))
	}
	d.problem(w, r, status, lockkeeper.Message(err), lockkeeper.NextStep(err))
}

// problem answers with a page that says what is wrong.
func (d *Dashboard) problem(w http.ResponseWriter, r *http.Request, status int, what, next string) {
	if r.Method == http.MethodPost {
		d.say(w, r, status, said{Bad: true, Lines: []string{what}, Next: next})
		return
	}
	name := "frame"
	if isPart(r) {
		name = "part"
	}
	f := d.frameOf(r, pageKind{name: "problem", title: http.StatusText(status)})
	f.Body = problem{What: what, Next: next}
	_ = d.ask(r, f) // which may be what is wrong; the page says nothing of it then
	d.render(w, r, status, name, f)
}
