package api

import (
	"context"
	"net/http"
	"reflect"
	"strings"

	"lockkeeper/internal/surface/access"
)

// route is one thing that can be asked of the server.
type route struct {
	method  string
	pattern string // of net/http, without the method
	summary string
	need    access.Need
	open    bool         // nobody has to say who they are
	query   reflect.Type // of what follows the ? in its address; nil: nothing
	in      reflect.Type // of the body; nil: nothing
	out     reflect.Type // of the answer; nil: it is not JSON
	media   string       // of the answer; empty: JSON
	replies []reply      // to what is asked rightly; none: 200, as asked
	failure failure      // how it says what was wrong; empty: as a Problem
	room    roomName
	large   bool // its body may be large
	whole   bool // the act completes even if the client disconnects

	serve func(*Server, *call) error
}

func (rt *route) key() string { return rt.method + " " + rt.pattern }

// reply is one way in which a route answers.
type reply struct {
	status int
	media  string // empty: there is no body
	what   string
}

// failure is how a route says what was wrong: the name of a response in the OpenAPI document.
type failure string

const (
	failureProblem  failure = "Problem"
	failurePage     failure = "Page"
	failureProtocol failure = "Protocol"
	failureLFS      failure = "GitLFS"
)

// call is one request that was let in.
type call struct {
	w       http.ResponseWriter
	control *http.ResponseController // of the connection, whatever w is
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
	proofSession // which browsers send by themselves
)

// nothing is the body, or the answer, of routes that need none.
type nothing struct{}

// typeOf is the type of a body or an answer.
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
			out, err := answer(s, c, query)
			if err != nil {
				return err
			}
			writeJSON(c.w, http.StatusOK, out)
			return nil
		}}
}

// act is a route that changes something. Its body is In.
func act[In, Out any](pattern string, need access.Need, summary string, answer func(*Server, *call, In) (Out, error)) route {
	return route{method: http.MethodPost, pattern: pattern, summary: summary, need: need, in: typeOf[In](), out: typeOf[Out](), whole: true,
		serve: func(s *Server, c *call) error {
			in, err := decodeBody[In](c.r)
			if err != nil {
				return err
			}
			out, err := answer(s, c, in)
			if err != nil {
				return err
			}
			writeJSON(c.w, http.StatusOK, out)
			return nil
		}}
}

// raw is a route that answers in its own way.
func raw(method, pattern string, need access.Need, media, summary string, serve func(*Server, *call) error) route {
	return route{method: method, pattern: pattern, summary: summary, need: need, media: media, serve: serve}
}

// withRoom is a route whose requests stay for long, or are large.
func (rt route) withRoom(name roomName) route {
	rt.room = name
	return rt
}

// withLargeBody is a route whose body may be large.
func (rt route) withLargeBody() route {
	rt.large, rt.room = true, roomLarge
	return rt
}

// of is a route whose address may say more.
func (rt route) of(query reflect.Type) route {
	rt.query = query
	return rt
}

// answers is a route that answers in these ways.
func (rt route) answers(replies ...reply) route {
	rt.replies = replies
	return rt
}

// failing is a route that says in its own way what was wrong.
func (rt route) failing(how failure) route {
	rt.failure = how
	return rt
}

// opened returns a route that needs no authentication.
func (rt route) opened() route {
	rt.open, rt.room = true, roomOpen
	return rt
}

// under is the same route at another address.
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
		return nil, r, &refusal{code: codeMethod, reason: r.Method + " is not how " + r.URL.Path + " is asked", next: "use " + strings.Join(allowed, " or "), allow: strings.Join(allowed, ", ")}
	}
	return nil, r, &refusal{code: codeNotFound, reason: "there is nothing at " + r.URL.Path, next: "see /api/v1/openapi.json for what there is"}
}

// matchKey is where what the mux finds is noted.
type matchKey struct{}

type match struct {
	route *route
	r     *http.Request
}

// match asks the mux. Its handlers do nothing but to note that they were found: whether
// they are reached is decided after that.
func (s *Server) match(r *http.Request, method string) (*route, *http.Request) {
	var found match
	r = r.WithContext(context.WithValue(r.Context(), matchKey{}, &found))
	r.Method = method
	s.mux.ServeHTTP(discarded{}, r)
	return found.route, found.r
}

// add puts a route into the mux.
func (s *Server) add(rt *route) {
	s.mux.HandleFunc(rt.key(), func(_ http.ResponseWriter, r *http.Request) {
		*r.Context().Value(matchKey{}).(*match) = match{rt, r}
	})
}

// discarded is a response without a client.
type discarded struct{}

func (discarded) Header() http.Header         { return http.Header{} }
func (discarded) Write(b []byte) (int, error) { return len(b), nil }
func (discarded) WriteHeader(int)             {}
