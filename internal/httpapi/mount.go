package httpapi

import (
	"net/http"
	"strings"

	"lockkeeper/internal/access"
	"lockkeeper/internal/lfs"
)

// mountedRoutes are those of other protocols, which answer in their own ways behind the
// same layers: the Model Context Protocol, and the locking API of git-lfs.
func mountedRoutes(o *Options) (list []route) {
	if o.MCP != nil {
		serve := func(s *Server, c *call) error {
			o.MCP.ServeHTTP(c.w, c.r)
			return nil
		}
		list = append(list,
			raw(http.MethodPost, "/mcp", writers, "application/json", "Messages of the Model Context Protocol (streamable HTTP).", serve).withLargeBody(),
			raw(http.MethodDelete, "/mcp", writers, "application/json", "End a session of that protocol.", serve))
	}
	if o.LFS != nil {
		for _, rt := range lfs.Routes() {
			list = append(list, raw(rt.Method, rt.Pattern, rt.Need, lfs.Media, rt.Summary, func(s *Server, c *call) error {
				o.LFS.ServeHTTP(c.w, c.r)
				return nil
			}).of(rt.Query))
		}
	}
	return list
}

// isLFS reports whether a request is one of git-lfs, which knows tokens as passwords.
func isLFS(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, lfs.Prefix) }

// failLFS answers git-lfs with an error of the layers before it, as that reads them.
func failLFS(w http.ResponseWriter, status int, err error) {
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="lockkeeper"`)
	}
	writeJSON(w, status, map[string]string{"message": err.Error()})
}

// byPassword is who a request of git-lfs is from: the password is a token, whatever the
// name says.
func (s *Server) byPassword(r *http.Request) (who access.Person, by proof, known bool, err error) {
	_, token, given := r.BasicAuth()
	if !given || !isLFS(r) {
		return who, proofNone, false, nil
	}
	who, known, err = s.book.ByToken(token)
	return who, proofToken, known, err
}
