package api

import (
	"net/http"
	"slices"

	"lockkeeper/internal/surface/access"
)

// These are the roles that routes need.
var (
	viewers   = access.Need{AtLeast: access.Viewer}
	lookers   = access.Need{AtLeast: access.Viewer, Agents: true}
	operators = access.Need{AtLeast: access.Operator}
	writers   = access.Need{AtLeast: access.Operator, Agents: true}
	admins    = access.Need{AtLeast: access.Admin}
)

const api = "/api/v1"

// routes returns every route of the server.
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
		raw(http.MethodPost, "/login", viewers, mediaPage, "Exchange a ticket or a token, the form field secret, for a session.", logIn).opened().
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
	mediaPage = "text/html" // shown by a browser
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
