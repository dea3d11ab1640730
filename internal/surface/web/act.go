package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/encoding/httpstatus"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/access"
	"lockkeeper/internal/surface/acts"
)

// A deed is one act, at POST /do/NAME.
type deed struct {
	name    string
	role    access.Role // the required role
	needs   string      // the required fields
	summary string
	do      func(d *Dashboard, ctx context.Context, f form) (said, error)
}

func deeds() []deed {
	list := []deed{
		{"answer", access.Operator, "word", "Answer a decision", answer},
		{"withdraw", access.Operator, "", "Withdraw answers", withdraw},
		{"retry", access.Operator, "item", "Retry a failed item", retry},
		{"cancel", access.Operator, "item", "Cancel an item, and stop it if it runs", cancel},
		{"undo", access.Operator, "", "Undo a landing", undo},
		{"start", access.Operator, "", "Start or resume a run", start},
		{"stop", access.Operator, "", "Stop the run", stop},
		{"phase", access.Operator, "unit phase", "Start a phase of a unit", startPhase},
		{"retry-cause", access.Operator, "cause", "Retry all failures of one cause", retryCause},
		{"exclude-cause", access.Operator, "cause", "Exclude all failed work of one cause from runs", excludeCause},
		{"include-all", access.Operator, "name", "Include units and batches in runs again", includeAll},
		{"land", access.Operator, "id", "Land a rescued write", land},
		{"drop", access.Operator, "id", "Drop a rescued write", drop},
		{"land-all", access.Operator, "where until", "Land rescued writes that apply", landAll},
		{"drop-all", access.Operator, "where until count", "Drop rescued writes", dropAll},
		{"force-release", access.Admin, "grant holder reason", "Force-release a grant", forceRelease},
		{"clear-locks", access.Admin, "", "Release all locks of all holders", clearLocks},
	}
	for _, kind := range acts.UnitActs() {
		if kind.Name != "retry" { // an item is retried with the act retry above
			list = append(list, deed{kind.Name, access.Operator, "unit", kind.Summary, onUnit(kind)})
		}
	}
	return list
}

// said is the result of an act, as text for the person.
type said struct {
	Bad     bool     // all or part of the act was refused
	Changed bool     // the act changed something
	Lines   []string // what happened, the most important first
	Next    string   // the next step
	Flow    string
	Back    []string // references of answers that can be withdrawn

	status int
	goTo   string // the next address in the dashboard
}

// act performs the act of a submitted form and reports the result.
func (d *Dashboard) act(w http.ResponseWriter, r *http.Request, a deed) {
	if err := r.ParseForm(); err != nil {
		d.problem(w, r, http.StatusBadRequest, "The form could not be read: "+err.Error(), "reload the page")
		return
	}
	who, _ := access.Who(r.Context())
	f := form{Values: r.PostForm, who: who}
	var s said
	err := f.needs(strings.Fields(a.needs)...)
	if err == nil {
		s, err = a.do(d, r.Context(), f)
	}
	if err != nil {
		s = s.with(err)
	}
	if s.status >= http.StatusInternalServerError {
		d.failed(fmt.Errorf("%s: %w", a.name, err))
	}
	if !s.Bad {
		s.goTo = f.local("then")
	}
	d.say(w, r, s.status, s)
}

// with returns s with a refusal added.
func (s said) with(err error) said {
	s.Bad = true
	s.status = max(s.status, httpstatus.Of(err))
	for _, part := range lockkeeper.Parts(err) {
		s.Lines = append(s.Lines, strings.Split(lockkeeper.LocalTimes(lockkeeper.Message(part)), "\n")...)
	}
	s.Next = cmp.Or(s.Next, lockkeeper.LocalTimes(lockkeeper.NextStep(err)))
	return s
}

// nextHeader tells the page that an act succeeded, and which address to show; empty: this one.
const nextHeader = "Lockkeeper-Next"

// say reports the result of an act: within the page that sent the form, or as a page of its own.
func (d *Dashboard) say(w http.ResponseWriter, r *http.Request, status int, s said) {
	if status == 0 || s.Changed {
		status = http.StatusOK
	}
	if !isPart(r) {
		f := d.frameOf(r, pageKind{name: "answer", title: "What happened"})
		f.Body = struct {
			said
			Then string
		}{s, s.goTo}
		if err := d.ask(r, f); err != nil && r.Context().Err() == nil {
			d.failed(fmt.Errorf("cannot count the open decisions after %s: %w", r.URL.Path, err)) // the result of the act is unaffected
		}
		d.writePage(w, r, status, f)
		return
	}
	if s.Changed {
		w.Header().Set(nextHeader, s.goTo)
	}
	d.render(w, r, status, "said", s)
}

type form struct {
	url.Values
	who access.Person
}

// Get returns the value of a field, without white space around it.
func (f form) Get(name string) string { return strings.TrimSpace(f.Values.Get(name)) }

// needs refuses a form in which one of the fields is empty.
func (f form) needs(names ...string) (err error) {
	for _, name := range names {
		if f.Get(name) == "" {
			err = errors.Join(err, &lockkeeper.InputError{Field: name, Reason: "required", Next: "fill it in"})
		}
	}
	return err
}

// local returns the value of a field if it is an address in the dashboard, otherwise "".
func (f form) local(name string) string {
	u, err := url.Parse(f.Get(name))
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(u.Path, "/") || strings.HasPrefix(u.Path, "//") || strings.Contains(u.Path, `\`) {
		return ""
	}
	return u.String()
}

// seenAs returns a reference together with the version that the page shows.
func seenAs(ref progress.Ref, version string) string {
	if version == "" {
		version = "-"
	}
	return version + " " + ref.String()
}

// refs returns the references of a form, with the versions that the page showed.
func (f form) refs() (list []progress.Ref, seen acts.Seen, err error) {
	seen = acts.Seen{}
	for _, value := range f.Values["ref"] {
		version, name, _ := strings.Cut(value, " ")
		ref, err := progress.ParseRef(name)
		if err != nil {
			return nil, nil, err
		}
		list = append(list, ref)
		if version != "-" {
			seen[ref] = version
		}
	}
	if len(list) == 0 {
		return nil, nil, &lockkeeper.InputError{Field: "ref", Reason: "no entry is selected", Next: "select at least one entry"}
	}
	return list, seen, nil
}

func (d *Dashboard) decider(ctx context.Context, f form) (*acts.Decider, error) {
	return acts.Open(ctx, d.app, f.Get("flow"), f.who.Actor())
}
