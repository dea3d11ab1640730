package web

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"regexp"
	"strings"
	"time"

	"lockkeeper/internal/surface/access"
	"lockkeeper/internal/surface/patch"
)

// PartHeader is the header of the requests that a page's own script sends. Its value is the hash of
// the part that the page shows, or "-".
const PartHeader = "Lockkeeper-Part"

// isPart reports whether the page's own script sent the request.
func isPart(r *http.Request) bool { return r.Header.Get(PartHeader) != "" }

// A partReply is the answer to a request for a part of a page.
type partReply struct {
	Title   string         `json:"title,omitempty"`
	Heading string         `json:"heading,omitempty"`
	Needs   *int           `json:"needs,omitempty"`   // nil: unknown
	Hash    string         `json:"hash"`              // of the part
	HTML    *string        `json:"html,omitempty"`    // the part; nil: see Changes
	Changes []patch.Change `json:"changes,omitempty"` // what changed since the part that the page shows
}

// part renders the template that a page names, without keys of forms and ages of times: these differ
// each time. The script of the page adds them, and fill does it for pages without scripts.
func (d *Dashboard) part(r *http.Request, name string, data any) (*patch.Part, error) {
	var b bytes.Buffer
	if err := d.set(r).ExecuteTemplate(&b, name, data); err != nil {
		return nil, fmt.Errorf("page %s: %w", r.URL.Path, err)
	}
	p := patch.Parse(legible(b.String()))
	d.shown.Keep(p)
	return p, nil
}

// set returns the templates for the role of the requesting person.
func (d *Dashboard) set(r *http.Request) *templates {
	who, _ := access.Who(r.Context())
	if set, ok := d.pages[who.Role]; ok {
		return set
	}
	return d.pages[access.Viewer]
}

// writePart sends what changed in a part since the hash that the request names, or all of it.
func (d *Dashboard) writePart(w http.ResponseWriter, r *http.Request, status int, began time.Time, name string, data any) {
	reply := partReply{}
	if f, ok := data.(*frame); ok {
		reply.Title, reply.Heading, data = f.title(), oneLine(f.Heading), f.Body
		if f.Known {
			reply.Needs = &f.Needs
		}
	}
	p, err := d.part(r, name, data)
	if err != nil {
		d.unrendered(w, err)
		return
	}
	reply.Hash = p.Hash
	if before := d.shown.Find(r.Header.Get(PartHeader)); before != nil {
		reply.Changes = p.Since(before)
	} else {
		reply.HTML = &p.HTML
	}
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false)
	if err := e.Encode(reply); err != nil {
		d.unrendered(w, err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Vary", PartHeader)
	h.Set("Server-Timing", fmt.Sprintf("page;dur=%.1f", float64(time.Since(began).Microseconds())/1e3)) // the page waits longer if this takes long
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // the browser has disconnected
}

func (d *Dashboard) unrendered(w http.ResponseWriter, err error) {
	d.failed(err)
	http.Error(w, "this page could not be rendered; see the log of the server", http.StatusInternalServerError)
}

// emptyKey is the field for the key of a form.
const emptyKey = `name="idempotency_key" value=""`

// emptyAge matches a time whose age is empty.
var emptyAge = regexp.MustCompile(`<time datetime="([^"]*)"[^>]*><b></b>`)

// fill adds to a part what a page needs if it has no script: the keys of forms and the ages of times.
func (d *Dashboard) fill(part string) template.HTML {
	now := d.now()
	text := emptyAge.ReplaceAllStringFunc(part, func(found string) string {
		at, err := time.Parse(time.RFC3339Nano, emptyAge.FindStringSubmatch(found)[1])
		if err != nil {
			return found
		}
		return strings.TrimSuffix(found, "</b>") + template.HTMLEscapeString(momentOf(at, now).Age) + "</b>"
	})
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, emptyKey)
		b.WriteString(before)
		if !found {
			return template.HTML(b.String())
		}
		fmt.Fprintf(&b, `name="idempotency_key" value="%s"`, rand.Text())
		text = after
	}
}
