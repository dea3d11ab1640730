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
	"lockkeeper/internal/encoding/httpstatus"
	"lockkeeper/internal/encoding/strictjson"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/access"
)

// Prefix is the path that the API is mounted at, and Media its content type.
const (
	Prefix = "/lfs/"
	Media  = "application/vnd.git-lfs+json"
)

// An API serves the git-lfs locking API of one codebase.
type API struct {
	app *project.Project
	mux *http.ServeMux
}

// A Route is one request that git-lfs can make.
type Route struct {
	Method  string
	Pattern string // pattern of http.ServeMux
	Need    access.Need
	Query   reflect.Type // type of the query string; nil if there is none
	Summary string
	Replies map[int]string // descriptions of the responses, by status

	serve func(*API, *request) (status int, answer any, err error)
}

// Routes returns all routes, for the server that mounts the API. People lock files. Agents
// can list locks; the engine refuses their other requests and records them.
func Routes() []Route {
	lookers := access.Need{AtLeast: access.Viewer, Agents: true}
	writers := access.Need{AtLeast: access.Operator, Agents: true}
	people := access.Need{AtLeast: access.Operator}
	return []Route{
		{http.MethodGet, Prefix + "locks", lookers, reflect.TypeFor[listQuery](), "git-lfs: list the files that are held for writing.",
			map[int]string{http.StatusOK: "A page of the locked files."}, (*API).list},
		{http.MethodPost, Prefix + "locks", people, nil, "git-lfs: lock a file, until it is unlocked.",
			map[int]string{http.StatusCreated: "The file is locked.", http.StatusConflict: "Another holder has locked the file."}, (*API).lock},
		{http.MethodPost, Prefix + "locks/verify", lookers, nil, "git-lfs: list the caller's locks and those of others.",
			map[int]string{http.StatusOK: "A page of the caller's locks, and a page of the locks of others."}, (*API).verify},
		{http.MethodPost, Prefix + "locks/{id}/unlock", writers, nil, "git-lfs: release a lock; with force, one of another owner.",
			map[int]string{http.StatusOK: "The lock is released.", http.StatusForbidden: "The lock belongs to another holder.", http.StatusNotFound: "The lock does not exist."}, (*API).unlock},
		{http.MethodPost, Prefix + "objects/batch", lookers, nil, "git-lfs: refused, because no objects are stored here.",
			map[int]string{http.StatusNotImplemented: "The response says that objects are not stored here."}, (*API).batch},
	}
}

func New(a *project.Project) *API {
	api := &API{app: a, mux: http.NewServeMux()}
	for _, rt := range Routes() {
		api.mux.HandleFunc(rt.Method+" "+rt.Pattern, func(w http.ResponseWriter, r *http.Request) { api.answer(w, r, rt) })
	}
	return api
}

// ServeHTTP serves one request. Package access put the caller into its context.
func (api *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { api.mux.ServeHTTP(w, r) }

type request struct {
	*http.Request
	who access.Person
}

// refused is an error of the API itself, with its status.
type refused struct {
	status       int
	reason, next string
}

func (e *refused) Error() string { return lockkeeper.JoinNext(e.reason, e.next) }

func (e *refused) NextStep() string { return e.next }

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
	w.Write(append(body, '\n')) // an error means that the client is gone
}

func (api *API) serve(r *http.Request, rt Route) (int, any, error) {
	who, known := access.Who(r.Context())
	if !known {
		return 0, nil, &refused{status: http.StatusUnauthorized, reason: "not logged in"}
	}
	if r.Header.Get("Sec-Fetch-Site") != "" || r.Header.Get("Origin") != "" {
		return 0, nil, &refused{status: http.StatusForbidden, reason: "this API is for git-lfs, not for web pages"}
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

func (r *request) into(value any) error {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != Media && media != "application/json" {
		return &refused{status: http.StatusUnsupportedMediaType, reason: fmt.Sprintf("content type is %q; must be %s", r.Header.Get("Content-Type"), Media)}
	}
	body, err := io.ReadAll(r.Body) // the server bounds the size of the body
	if err != nil {
		return err
	}
	if err := strictjson.Unmarshal(body, value, false); err != nil {
		return &refused{status: http.StatusUnprocessableEntity, reason: "invalid body: " + err.Error()}
	}
	return nil
}

func (api *API) batch(*request) (int, any, error) {
	return 0, nil, &refused{http.StatusNotImplemented, "Lockkeeper stores locks, not objects", "see docs/git-lfs.md for where to store objects"}
}
