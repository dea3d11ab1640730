package web

import (
	"net/http"
	"path/filepath"
	"time"

	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/access"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/patch"
	"lockkeeper/internal/surface/view"
)

// Options configures a dashboard.
type Options struct {
	App    *project.Project // the codebase; the caller closes it
	View   Views            // nil: a view.Reader of App
	Runs   *acts.Runs       // the runs of this process; nil: the dashboard cannot start runs
	People *access.Accounts // users of the server; nil: not shown
	Now    func() time.Time // nil: time.Now
	Failed func(error)      // called with internal errors; nil: they are ignored
}

// A Dashboard serves the pages and acts of one codebase.
type Dashboard struct {
	app    *project.Project
	view   Views
	runs   *acts.Runs
	people *access.Accounts
	now    func() time.Time
	failed func(error)

	name  string // name of the codebase
	pages map[access.Role]*templates
	shown patch.Memory // renderings that browsers show
}

func New(o Options) (*Dashboard, error) {
	d := &Dashboard{app: o.App, view: o.View, runs: o.Runs, people: o.People, now: o.Now, failed: o.Failed}
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
	d.pages, err = d.parse()
	return d, err
}

// A Route is one address of the dashboard. The server that mounts it checks Need and limits
// the body before it calls Serve.
type Route struct {
	Method  string
	Pattern string // pattern of http.ServeMux
	Need    access.Need
	Open    bool // needs no login
	Summary string
	Serve   func(d *Dashboard, w http.ResponseWriter, r *http.Request)
}

func Routes() []Route {
	list := []Route{{Method: http.MethodGet, Pattern: "/assets/{file}", Open: true, Summary: "A file that pages need", Serve: (*Dashboard).asset}}
	for _, p := range pages() {
		list = append(list, Route{Method: http.MethodGet, Pattern: p.pattern, Need: access.Need{AtLeast: access.Viewer}, Summary: "Page: " + p.question,
			Serve: func(d *Dashboard, w http.ResponseWriter, r *http.Request) { d.page(w, r, p) }})
	}
	for _, a := range deeds() {
		list = append(list, Route{Method: http.MethodPost, Pattern: "/do/" + a.name, Need: access.Need{AtLeast: a.role}, Summary: a.summary,
			Serve: func(d *Dashboard, w http.ResponseWriter, r *http.Request) { d.act(w, r, a) }})
	}
	return append(list, Route{Method: http.MethodPost, Pattern: "/do/seen", Need: access.Need{AtLeast: access.Viewer}, Summary: "Mark all changes so far as seen", Serve: (*Dashboard).seen})
}
