package mcp_test

import (
	"testing"

	"lockkeeper/internal/project/projecttest"
)

// No tool claims, writes or defers a path that is protected from agents.
func TestToolsKeepProtected(t *testing.T) {
	for tool, input := range map[string]args{"write": {"text": "new\n"}, "claim": {}, "defer": {"content": "new\n"}, "delete": {"delete": true}} {
		t.Run(tool, func(t *testing.T) {
			place := projecttest.Empty(t, projecttest.ProtectedConfig)
			s := &scene{place.Codebase(t), t}
			c := s.stdio("one")
			projecttest.StayProtected(t, place, func(t *testing.T, path string) bool {
				switch tool {
				case "claim":
					return !c.call("claim", args{"paths": []string{path}}).wrong
				case "delete":
					if !c.call("write", args{"path": path, "text": "new\n"}).wrong {
						return !c.call("write", args{"path": path, "delete": true}).wrong
					}
					return false
				}
				input["path"] = path
				return !c.call(tool, input).wrong
			})
		})
	}
}
