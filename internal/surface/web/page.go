package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/encoding/httpstatus"
	"lockkeeper/internal/surface/access"
)

// A frame is the data of the layout around a page.
type frame struct {
	Title    string
	Heading  string
	Question string
	Name     string // name of the page
	Live     string // topics whose events refresh the page
	Menu     []menuEntry
	Codebase string
	Person   access.Person
	Known    bool // Needs and Seq are set
	Needs    int  // number of open decisions
	Seq      uint64
	Now      string
	Topics   string
	Diffs    bool // the page may show a diff, so it needs the script and styles of diffs
	Body     any
	Content  template.HTML // Body as HTML
	Hash     string        // of Content
}

type menuEntry struct {
	Title, URL, Key string
	Here            bool
}

// A choice is one filter of a list, with the number of entries that pass it.
type choice struct {
	Name  string
	Count int
	URL   string
	Here  bool // this choice is in use
}

// frameOf returns the frame of a page, without the counts that ask adds.
func (d *Dashboard) frameOf(r *http.Request, p pageKind) *frame {
	who, _ := access.Who(r.Context())
	kinds, err := json.Marshal(topics)
	if err != nil { // cannot fail: topics holds only strings
		d.failed(err)
	}
	f := &frame{Heading: p.title, Question: p.question, Name: p.name, Live: p.topics, Diffs: p.diffs, Codebase: d.name, Person: who, Now: d.now().UTC().Format(time.RFC3339Nano), Topics: string(kinds)}
	for _, other := range pages() {
		if other.key != "" {
			f.Menu = append(f.Menu, menuEntry{Title: other.title, URL: strings.TrimSuffix(other.pattern, "{$}"), Key: other.key, Here: other.name == p.name})
		}
	}
	return f
}

// ask sets the number of open decisions and the position in the log that the page shows.
func (d *Dashboard) ask(r *http.Request, f *frame) error {
	queue, err := d.view.Decisions(r.Context(), "")
	if err == nil {
		f.Known, f.Seq, f.Needs = true, queue.Seq, len(queue.Open)
	}
	return err
}

// page serves a page, or what changed in its inner part if the page's own script asks.
func (d *Dashboard) page(w http.ResponseWriter, r *http.Request, p pageKind) {
	began := time.Now()
	f := d.frameOf(r, p)
	// Read Seq before the page's data, so that the data is at least as new as Seq.
	err := d.ask(r, f)
	if err == nil {
		err = d.view.ReadItemNames(r.Context())
	}
	if err == nil {
		f.Body, err = p.data(d, w, r)
	}
	if moved, ok := errors.AsType[*movedError](err); ok {
		http.Redirect(w, r, moved.to, http.StatusFound)
		return
	}
	if err != nil {
		d.trouble(w, r, err)
		return
	}
	if titled, ok := f.Body.(interface{ heading() string }); ok {
		f.Heading = titled.heading()
	}
	switch {
	case isPart(r) && p.bare:
		d.writePart(w, r, http.StatusOK, began, p.name, f.Body)
	case isPart(r):
		d.writePart(w, r, http.StatusOK, began, p.name, f)
	default:
		d.writePage(w, r, http.StatusOK, f)
	}
}

// title returns the title of the browser's window.
func (f *frame) title() string {
	title := f.Heading + " · " + f.Codebase
	if f.Needs > 0 {
		title = fmt.Sprintf("(%d) %s", f.Needs, title)
	}
	return title
}

// writePage sends a whole page.
func (d *Dashboard) writePage(w http.ResponseWriter, r *http.Request, status int, f *frame) {
	f.Title = f.title()
	part, err := d.part(r, f.Name, f.Body)
	if err != nil {
		d.unrendered(w, err)
		return
	}
	f.Hash, f.Content = part.Hash, d.fill(part.HTML)
	d.render(w, r, status, "frame", f)
}

// render writes a template for the role of the requesting person.
func (d *Dashboard) render(w http.ResponseWriter, r *http.Request, status int, name string, data any) {
	var page bytes.Buffer
	if err := d.set(r).ExecuteTemplate(&page, name, data); err != nil {
		d.unrendered(w, fmt.Errorf("page %s: %w", r.URL.Path, err))
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Vary", PartHeader)
	w.WriteHeader(status)
	_, _ = w.Write([]byte(legible(page.String()))) // the browser has disconnected
}

// templates holds the parsed templates for one role.
type templates = template.Template

// parse parses the templates once for each role, so that pages offer only permitted acts.
func (d *Dashboard) parse() (map[access.Role]*templates, error) {
	sets := map[access.Role]*templates{}
	for _, role := range []access.Role{access.Viewer, access.Operator, access.Admin} {
		may := func(needed access.Role) bool { return role.Meets(access.Need{AtLeast: needed}) }
		set := template.New("")
		if _, err := set.Funcs(d.functions()).Funcs(template.FuncMap{"may": may}).ParseFS(embedded, "templates/*.html"); err != nil {
			return nil, err
		}
		sets[role] = set
	}
	return sets, nil
}

type problem struct {
	What string
	Next string
}

// trouble responds to an error with an error page.
func (d *Dashboard) trouble(w http.ResponseWriter, r *http.Request, err error) {
	status := httpstatus.Of(err)
	if status >= http.StatusInternalServerError && r.Context().Err() == nil {
		d.failed(fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err))
	}
	d.problem(w, r, status, lockkeeper.LocalTimes(lockkeeper.Message(err)), lockkeeper.LocalTimes(lockkeeper.NextStep(err)))
}

// Refuse responds with a page that says why a request was refused.
func (d *Dashboard) Refuse(w http.ResponseWriter, r *http.Request, status int, what, next string) {
	d.problem(w, r, status, what, next)
}

func (d *Dashboard) problem(w http.ResponseWriter, r *http.Request, status int, what, next string) {
	if r.Method == http.MethodPost {
		d.say(w, r, status, said{Bad: true, Lines: []string{what}, Next: next})
		return
	}
	f := d.frameOf(r, pageKind{name: "problem", title: http.StatusText(status)})
	f.Body = problem{What: what, Next: next}
	_ = d.ask(r, f) // if this fails too, the page has no counts
	if isPart(r) {
		d.writePart(w, r, status, time.Now(), f.Name, f)
		return
	}
	d.writePage(w, r, status, f)
}
