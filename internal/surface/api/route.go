package api

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"lockkeeper/internal/surface/access"
)

// A route is one method and URL pattern of the server, with its handler and its description.
type route struct {
	method  string
	pattern string // pattern for net/http, without the method
	summary string
	need    access.Need
	open    bool         // needs no authentication
	query   reflect.Type // type of the query parameters; nil: none allowed
	in      reflect.Type // type of the body; nil: none
	out     reflect.Type // type of the response; nil: not JSON
	media   string       // content type of the response; empty: JSON
	replies []reply      // successful responses; empty: 200 with out or media
	failure failure      // error format; empty: Problem
	room    roomName
	large   bool // the body of the request may be large
	whole   bool // the act completes even if the client disconnects

	serve func(*Server, *call) error
}

func (rt *route) key() string { return rt.method + " " + rt.pattern }

// A reply is one successful response of a route.
type reply struct {
	status int
	media  string // empty: no body
	what   string
}

// failure is an error format: the name of a response in the OpenAPI document.
type failure string

const (
	failureProblem  failure = "Problem"
	failurePage     failure = "Page"
	failureProtocol failure = "Protocol"
	failureLFS      failure = "GitLFS"
)

// A call is one request on its way through the layers and its handler.
type call struct {
	w       http.ResponseWriter
	control *http.ResponseController // controller of the connection, even if w is a buffer
	r       *http.Request
	route   *route
	who     access.Person
	proof   proof
}

// proof is how a caller authenticated.
type proof uint8

const (
	proofNone proof = iota
	proofToken
	proofSession // a cookie, which browsers send by themselves
)

// nothing is the type of an empty body or response.
type nothing struct{}

func typeOf[T any]() reflect.Type {
	if t := reflect.TypeFor[T](); t != reflect.TypeFor[nothing]() {
		return t
	}
	return nil
}

// ask returns a route that changes nothing. Query holds the parameters of its URL.
func ask[Query, Out any](pattern string, need access.Need, summary string, answer func(*Server, *call, Query) (Out, error)) route {
	return route{method: http.MethodGet, pattern: pattern, summary: summary, need: need, query: typeOf[Query](), out: typeOf[Out](),
		serve: func(s *Server, c *call) error {
			query, err := decodeQuery[Query](c.r.URL.RawQuery)
			if err != nil {
				return err
			}
			return c.reply(answer(s, c, query))
		}}
}

// act returns a route that changes something. In is the type of its body.
func act[In, Out any](pattern string, need access.Need, summary string, answer func(*Server, *call, In) (Out, error)) route {
	return route{method: http.MethodPost, pattern: pattern, summary: summary, need: need, in: typeOf[In](), out: typeOf[Out](), whole: true,
		serve: func(s *Server, c *call) error {
			var in In
			if err := decodeBody(c.r, &in); err != nil {
				return err
			}
			return c.reply(answer(s, c, in))
		}}
}

// reply writes a value as the response, unless err is set.
func (c *call) reply(value any, err error) error {
	if err == nil {
		writeJSON(c.w, http.StatusOK, value)
	}
	return err
}

// raw returns a route whose handler writes the response itself.
func raw(method, pattern string, need access.Need, media, summary string, serve func(*Server, *call) error) route {
	return route{method: method, pattern: pattern, summary: summary, need: need, media: media, serve: serve}
}

func (rt route) withRoom(name roomName) route {
	rt.room = name
	return rt
}

func (rt route) withLargeBody() route {
	rt.large, rt.room = true, roomLarge
	return rt
}

func (rt route) of(query reflect.Type) route {
	rt.query = query
	return rt
}

func (rt route) answers(replies ...reply) route {
	rt.replies = replies
	return rt
}

// failing returns the route with another error format.
func (rt route) failing(how failure) route {
	rt.failure = how
	return rt
}

// opened returns a route that needs no authentication.
func (rt route) opened() route {
	rt.open, rt.room = true, roomOpen
	return rt
}

// under returns the same route under a path prefix.
func (rt route) under(prefix string) route {
	rt.pattern = prefix + rt.pattern
	return rt
}

// find returns the route of a request, and the request with the values of its path. Its error
// says why no route matches.
func (s *Server) find(r *http.Request) (*route, *http.Request, error) {
	if rt, matched := s.match(r, r.Method); rt != nil {
		return rt, matched, nil
	}
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		if rt, _ := s.match(r, method); rt != nil {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) > 0 {
		return nil, r, &refusal{code: codeMethod, reason: r.URL.Path + " does not accept " + r.Method, next: "use " + strings.Join(allowed, " or "), allow: strings.Join(allowed, ", ")}
	}
	return nil, r, &refusal{code: codeNotFound, reason: "no such address: " + r.URL.Path, next: "see /api/v1/openapi.json for all addresses"}
}

// matchKey is the context key under which the mux's handlers record the matched route.
type matchKey struct{}

type match struct {
	route *route
	r     *http.Request
}

// match returns the route that the mux finds. The mux's handlers only record the match. The layers decide later
// whether the route's own handler runs.
func (s *Server) match(r *http.Request, method string) (*route, *http.Request) {
	var found match
	r = r.WithContext(context.WithValue(r.Context(), matchKey{}, &found))
	r.Method = method
	s.mux.ServeHTTP(discarded{}, r)
	return found.route, found.r
}

func (s *Server) add(rt *route) {
	s.mux.HandleFunc(rt.key(), func(_ http.ResponseWriter, r *http.Request) {
		*r.Context().Value(matchKey{}).(*match) = match{rt, r}
	})
}

// discarded is a response writer that discards everything.
type discarded struct{}

func (discarded) Header() http.Header         { return http.Header{} }
func (discarded) Write(b []byte) (int, error) { return len(b), nil }
func (discarded) WriteHeader(int)             {}

// These are the roles that routes need.
var (
	viewers   = access.Need{AtLeast: access.Viewer}
	lookers   = access.Need{AtLeast: access.Viewer, Agents: true}
	operators = access.Need{AtLeast: access.Operator}
	writers   = access.Need{AtLeast: access.Operator, Agents: true}
	admins    = access.Need{AtLeast: access.Admin}
)

const api = "/api/v1"

func routes() []route {
	return slices.Concat(systemRoutes(), viewRoutes(), lockRoutes(), queueRoutes(), decideRoutes(), unitRoutes(), runRoutes(), treeRoutes(),
		pageRoutes(), agentRoutes(), lfsRoutes())
}

func systemRoutes() []route {
	return []route{
		raw(http.MethodGet, "/healthz", viewers, "text/plain", "Whether the process is alive.", health).opened(),
		raw(http.MethodGet, "/readyz", viewers, "text/plain", "Whether the store answers.", ready).opened(),
		raw(http.MethodGet, "/login", viewers, mediaPage, "The login page.", showLogin).opened(),
		raw(http.MethodGet, "/login/{asset}", viewers, mediaAny, "A file of the login page.", loginAsset).opened(),
		raw(http.MethodPost, "/login", viewers, mediaPage, "Exchange a ticket or a token for a session. The form field secret contains it.", logIn).opened().
			answers(reply{http.StatusSeeOther, "", "Logged in."}, reply{http.StatusUnauthorized, mediaPage, "The secret is unknown, used or expired."}, reply{http.StatusTooManyRequests, mediaPage, "Too many failed logins."}),
		raw(http.MethodPost, "/logout", lookers, mediaPage, "End the session.", logOut).answers(reply{http.StatusSeeOther, "", "The session has ended."}),
		raw(http.MethodGet, "/metrics", viewers, "text/plain", "Metrics for Prometheus.", (*Server).serveMetrics),
		raw(http.MethodGet, api+"/openapi.json", lookers, "application/json", "This document.", showOpenAPI),
		ask(api+"/me", lookers, "The name and role of the caller.", me),
		raw(http.MethodGet, "/events", viewers, "text/event-stream", "Events as they happen: id is the number, event the kind, data the event as JSON. The stream continues after Last-Event-ID, or after the parameter after. An event gap names events that the log no longer has.", (*Server).stream).of(typeOf[streamQuery]()).withRoom(roomStreams),
	}
}

// Content types other than JSON.
const (
	mediaPage = "text/html" // a page that a browser shows
	mediaForm = "application/x-www-form-urlencoded"
	mediaAny  = "*/*" // depends on the file
)

func health(_ *Server, c *call) error { return plain(c, "ok\n") }

// ready reports whether the store answers.
func ready(s *Server, c *call) error {
	if _, err := s.queue.Census(c.r.Context()); err != nil {
		s.opt.Log.Warn("the store does not answer", "error", err)
		return &refusal{code: codeBusy, reason: "the store does not answer"} // the client may be unauthenticated, so the details are only logged
	}
	return plain(c, "ok\n")
}

func plain(c *call, text string) error {
	c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	c.w.Write([]byte(text))
	return nil
}

func showOpenAPI(s *Server, c *call) error {
	c.w.Header().Set("Content-Type", "application/json; charset=utf-8")
	c.w.Write(s.openapi)
	return nil
}

// identity is the caller as the server knows it.
type identity struct {
	Name string      `json:"name"`
	Role access.Role `json:"role"`
}

func me(_ *Server, c *call, _ nothing) (identity, error) {
	return identity{c.who.Name, c.who.Role}, nil
}
