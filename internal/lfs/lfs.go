package lfs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"

	"lockkeeper"
	"lockkeeper/internal/access"
	"lockkeeper/internal/app"
	"lockkeeper/internal/httpstatus"
	"lockkeeper/internal/strictjson"
)

// Prefix is where the API is mounted, and Media what it speaks.
const (
	Prefix = "/lfs/"
	Media  = "application/vnd.git-lfs+json"
)

// API answers git-lfs.
type API struct {
	app *app.App
	mux *http.ServeMux
}

// Route is one thing that git-lfs can ask.
type Route struct {
	Method  string
	Pattern string // of http.ServeMux
	Need    access.Need
	Query   reflect.Type // of what may follow the ? in its address; nil: nothing
	Summary string
	Replies map[int]string // what it answers with to what is asked rightly, by status

	serve func(*API, *request) (status int, answer any, err error)
}

// Routes are all that can be asked, for whoever mounts an API. People lock; agents may look,
// and what they may not is refused with a record.
func Routes() []Route {
	lookers := access.Need{AtLeast: access.Viewer, Agents: true}
	writers := access.Need{AtLeast: access.Operator, Agents: true}
	people := access.Need{AtLeast: access.Operator}
	return []Route{
		{http.MethodGet, Prefix + "locks", lookers, reflect.TypeFor[listQuery](), "git-lfs: the files that somebody holds for writing.",
			map[int]string{http.StatusOK: "A page of them."}, (*API).list},
		{http.MethodPost, Prefix + "locks", people, nil, "git-lfs: lock a file, until it is unlocked.",
			map[int]string{http.StatusCreated: "It is locked.", http.StatusConflict: "Somebody has it."}, (*API).lock},
		{http.MethodPost, Prefix + "locks/verify", lookers, nil, "git-lfs: which locks are the caller's, and which are not.",
			map[int]string{http.StatusOK: "A page of both."}, (*API).verify},
		{http.MethodPost, Prefix + "locks/{id}/unlock", writers, nil, "git-lfs: give a lock back; with force, take it away from its owner.",
			map[int]string{http.StatusOK: "It is free.", http.StatusForbidden: "It is somebody else's.", http.StatusNotFound: "It is not there any more."}, (*API).unlock},
		{http.MethodPost, Prefix + "objects/batch", lookers, nil, "git-lfs: says that no objects are kept here.",
			map[int]string{http.StatusNotImplemented: "It says so."}, (*API).batch},
	}
}

// New makes the API of an open codebase.
func New(a *app.App) *API {
	api := &API{app: a, mux: http.NewServeMux()}
	for _, rt := range Routes() {
		api.mux.HandleFunc(rt.Method+" "+rt.Pattern, func(w http.ResponseWriter, r *http.Request) { api.answer(w, r, rt) })
	}
	return api
}

// ServeHTTP answers one request. Who asks is in its context.
func (api *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { api.mux.ServeHTTP(w, r) }

// request is one request, with who asks.
type request struct {
	*http.Request
	who access.Person
}

// refused is what the API itself has against a request.
type refused struct {
	status int
	reason string
}

func (e *refused) Error() string { return e.reason }

func (api *API) answer(w http.ResponseWriter, r *http.Request, rt Route) {
	status, value, err := api.serve(r, rt)
	if err != nil {
		status, value = statusOf(err), map[string]any{"message": err.Error()}
	}
	body, err := json.Marshal(value)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"message":"the answer cannot be written as JSON"}`)
	}
	w.Header().Set("Content-Type", Media)
	w.WriteHeader(status)
	w.Write(append(body, '\n')) // who does not read it is gone
}

func (api *API) serve(r *http.Request, rt Route) (int, any, error) {
	who, known := access.Who(r.Context())
	if !known {
		return 0, nil, &refused{http.StatusUnauthorized, "nobody knows who you are"}
	}
	if r.Header.Get("Sec-Fetch-Site") != "" || r.Header.Get("Origin") != "" {
		return 0, nil, &refused{http.StatusForbidden, "this is for git-lfs, and not for pages"}
	}
	return rt.serve(api, &request{r, who})
}

func statusOf(err error) int {
	var own *refused
	switch {
	case errors.As(err, &own):
		return own.status
	case lockkeeper.CodeOf(err) == lockkeeper.CodeRefused:
		return http.StatusForbidden
	}
	return httpstatus.Of(err)
}

// into reads the body of a request, which git-lfs marks as its own.
func (r *request) into(value any) error {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != Media && media != "application/json" {
		return &refused{http.StatusUnsupportedMediaType, fmt.Sprintf("the body is said to be %q, and not %s", r.Header.Get("Content-Type"), Media)}
	}
	body, err := io.ReadAll(r.Body) // bounded by whoever mounts this
	if err != nil {
		return err
	}
	if err := strictjson.Unmarshal(body, value, false); err != nil {
		return &refused{http.StatusUnprocessableEntity, "the body cannot be read: " + err.Error()}
	}
	return nil
}

// batch says where objects are not.
func (api *API) batch(*request) (int, any, error) {
	return 0, nil, &refused{http.StatusNotImplemented, "Lockkeeper keeps locks and no objects; next: see docs/git-lfs.md for where objects go"}
}
