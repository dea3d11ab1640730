package web

import (
	"context"
	"net/http"
	"path/filepath"
	"time"

	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/access"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/view"
)

// Views is what pages are made from. A *view.Reader is one.
type Views interface {
	Now(ctx context.Context, since uint64) (*view.Now, error)
	Decisions(ctx context.Context, flow string) (*view.Decisions, error)
	Decision(ctx context.Context, flow string, ref progress.Ref) (*view.Decision, error)
	Board(ctx context.Context, flow string) (*view.Board, error)
	Item(ctx context.Context, name string) (*view.Item, error)
	Items(ctx context.Context, q view.ItemsQuery) (*view.Items, error)
	Locks(ctx context.Context) (*view.Locks, error)
	Timeline(ctx context.Context, from, to time.Time) (*view.Timeline, error)
	Run(ctx context.Context, flow string) (*view.Run, error)
	Rescue(ctx context.Context) (*view.Rescue, error)
	Rescued(ctx context.Context, id string) (*view.RescueDetail, error)
	Nodes(ctx context.Context) (*view.Nodes, error)
	Audit(ctx context.Context, q view.AuditQuery) (*view.Audit, error)
}

// Options are what a dashboard needs.
type Options struct {
	App    *project.Project // the codebase; the caller's to close
	View   Views            // nil: a look of its own
	Runs   *acts.Runs       // that conducts runs in this process; nil: they are started elsewhere
	People *access.Book     // who may use the server; nil: it is not shown
	Now    func() time.Time // nil: time.Now
	Failed func(error)      // hears of what went wrong here, and not by what somebody asked; nil: nobody does
}

// Dashboard is the pages and acts of one codebase.
type Dashboard struct {
	app    *project.Project
	view   Views
	runs   *acts.Runs
	people *access.Book
	now    func() time.Time
	failed func(error)

	name  string // of the codebase
	files *assets
	pages map[access.Role]*templates
	mux   *http.ServeMux
}

// New makes the dashboard of a codebase.
func New(o Options) (*Dashboard, error) {
	d := &Dashboard{app: o.App, view: o.View, runs: o.Runs, people: o.People, now: o.Now, failed: o.Failed, mux: http.NewServeMux()}
	if d.now == nil {
		d.now = time.Now
	}
	if d.failed == nil {
		d.failed = func(error) {}
	}
	if d.view == nil {
		d.view = view.New(o.App)
	}
	d.name = "this codebase"
	if o.App != nil {
		d.name = filepath.Base(o.App.Root.Dir())
	}
	var err error
	if d.files, err = readAssets(); err != nil {
		return nil, err
	}
	if d.pages, err = d.parse(); err != nil {
		return nil, err
	}
	for _, route := range Routes() {
		d.mux.Handle(route.Method+" "+route.Pattern, d.guarded(route))
	}
	return d, nil
}

// ServeHTTP answers with a page, an asset, or what came of an act.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.mux.ServeHTTP(w, r) }

// Route is one thing that can be asked of a dashboard.
type Route struct {
	Method  string
	Pattern string // of http.ServeMux
	Need    access.Need
	Open    bool // it needs nobody: what a browser needs before anybody has logged in
	Summary string

	serve func(d *Dashboard, w http.ResponseWriter, r *http.Request)
}

// Routes returns every route, for the server that mounts the dashboard.
func Routes() []Route {
	list := []Route{{Method: http.MethodGet, Pattern: "/assets/{file}", Open: true, Summary: "A file that pages need", serve: (*Dashboard).asset}}
	for _, p := range pages() {
		list = append(list, Route{Method: http.MethodGet, Pattern: p.pattern, Need: access.Need{AtLeast: access.Viewer}, Summary: "Page: " + p.question,
			serve: func(d *Dashboard, w http.ResponseWriter, r *http.Request) { d.page(w, r, p) }})
	}
	for _, a := range deeds() {
		list = append(list, Route{Method: http.MethodPost, Pattern: "/do/" + a.name, Need: access.Need{AtLeast: a.role}, Summary: a.summary,
			serve: func(d *Dashboard, w http.ResponseWriter, r *http.Request) { d.act(w, r, a) }})
	}
	return append(list, Route{Method: http.MethodPost, Pattern: "/do/seen", Need: access.Need{AtLeast: access.Viewer}, Summary: "Take what changed so far as seen", serve: (*Dashboard).seen})
}

// guarded serves a route to those whose role is enough.
func (d *Dashboard) guarded(route Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, known := access.Who(r.Context())
		switch {
		case route.Open:
		case !known:
			d.problem(w, r, http.StatusUnauthorized, "You are not signed in", "open the link that lockkeeper login prints")
			return
		case !who.Role.Meets(route.Need):
			d.problem(w, r, http.StatusForbidden, "You are "+who.Name+", "+string(who.Role)+", and this takes "+route.Need.String(), "ask a person with that role")
			return
		}
		route.serve(d, w, r)
	})
}
