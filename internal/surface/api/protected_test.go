package api

import (
	"net/http"
	"testing"

	"lockkeeper/internal/project/projecttest"
	"lockkeeper/internal/surface/access"
)

// A token of any role cannot write paths that are protected from agents.
func TestWriteKeepsProtected(t *testing.T) {
	for _, role := range []access.Role{access.Agent, access.Admin} {
		t.Run(string(role), func(t *testing.T) {
			place := projecttest.Empty(t, projecttest.ProtectedConfig)
			s := newSceneOf(t, place)
			projecttest.StayProtected(t, place, func(t *testing.T, path string) bool {
				answer := s.as(role, "POST", "/api/v1/grants", map[string]any{"write": []string{path}})
				if answer.status != http.StatusOK {
					return false
				}
				var g given
				answer.into(&g)
				answer = s.as(role, "POST", "/api/v1/write", map[string]any{"grant": g.ID, "token": g.Token, "changes": []map[string]any{{"path": path, "text": "new\n"}}})
				s.as(role, "POST", "/api/v1/grants/"+g.ID+"/release", map[string]any{"token": g.Token}).want(ok)
				return answer.status == http.StatusOK
			})
		})
	}
}
