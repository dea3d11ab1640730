package api

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"lockkeeper/internal/compat/lfs"
	"lockkeeper/internal/surface/access"
	"lockkeeper/internal/surface/mcp"
	"lockkeeper/internal/surface/web"
)

// mount creates the handlers that run behind the same layers: the dashboard, the Model
// Context Protocol and git-lfs.
func (s *Server) mount() (err error) {
	o := &s.opt
	s.pages, err = web.New(web.Options{App: o.App, View: o.View, Runs: o.Runs, People: s.accounts, Now: o.Now,
		Failed: func(err error) { o.Log.Error("a page failed", "error", err) }})
	s.agents = mcp.New(mcp.Options{App: o.App, View: o.View, Version: o.Version, Log: o.Log, Now: o.Now})
	s.files = lfs.New(o.App)
	return err
}

func pageRoutes() (list []route) {
	for _, page := range web.Routes() {
		rt := raw(page.Method, page.Pattern, page.Need, mediaPage, page.Summary+".", func(s *Server, c *call) error {
			page.Serve(s.pages, c.w, c.r)
			return nil
		}).failing(failurePage)
		rt.whole = page.Method == http.MethodPost
		if page.Open {
			rt = rt.opened()
			rt.media = mediaAny
		}
		if rt.pattern == "/do/answer" { // pasted research can be long
			rt = rt.withLargeBody()
		}
		list = append(list, rt)
	}
	return list
}

func agentRoutes() []route {
	serve := func(s *Server, c *call) error {
		s.agents.ServeHTTP(c.w, c.r)
		return nil
	}
	return []route{
		raw(http.MethodPost, "/mcp", writers, mediaJSON, "Messages of the Model Context Protocol (streamable HTTP).", serve).withLargeBody().failing(failureProtocol).
			answers(reply{http.StatusOK, mediaJSON, "The answer to a message."}, reply{http.StatusAccepted, "", "Accepted messages that need no answer."}),
		raw(http.MethodDelete, "/mcp", writers, mediaJSON, "End a session of the protocol.", serve).failing(failureProtocol).
			answers(reply{http.StatusNoContent, "", "The session has ended and released its claims."}),
	}
}

func lfsRoutes() (list []route) {
	for _, rt := range lfs.Routes() {
		var replies []reply
		for _, status := range slices.Sorted(maps.Keys(rt.Replies)) {
			replies = append(replies, reply{status, lfs.Media, rt.Replies[status]})
		}
		list = append(list, raw(rt.Method, rt.Pattern, rt.Need, lfs.Media, rt.Summary, func(s *Server, c *call) error {
			s.files.ServeHTTP(c.w, c.r)
			return nil
		}).of(rt.Query).failing(failureLFS).answers(replies...))
	}
	return list
}

// isLFS reports whether a request is from git-lfs, which sends the token as a password.
func isLFS(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, lfs.Prefix) }

func failLFS(w http.ResponseWriter, status int, err error) {
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="lockkeeper"`)
	}
	writeJSON(w, status, map[string]string{"message": err.Error()})
}

// byPassword returns the person of a git-lfs request. The password is the token, and the
// user name is ignored.
func (s *Server) byPassword(r *http.Request) (who access.Person, by proof, known bool, err error) {
	_, token, given := r.BasicAuth()
	if !given || !isLFS(r) {
		return who, proofNone, false, nil
	}
	who, known, err = s.accounts.ByToken(token)
	return who, proofToken, known, err
}
