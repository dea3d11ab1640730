package api

import (
	"fmt"
	"net/http"

	"lockkeeper/internal/compat/lfs"
	"lockkeeper/internal/surface/access"
)

// tourAgents uses the Model Context Protocol: it opens a session, calls tools and ends the session. It also
// sends requests that must be refused.
func (u *tour) tourAgents() {
	u.t.Helper()
	session := ""
	post := func(role access.Role, body string) answer {
		u.t.Helper()
		return u.as(role, "POST", "/mcp", body, header("Accept", "application/json, text/event-stream"), header("Mcp-Session-Id", session))
	}
	begin := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"tour","version":"1"}}}`
	post("", begin).want(http.StatusUnauthorized, codeUnauthorized)
	post(access.Viewer, begin).want(http.StatusForbidden, codeForbidden)
	session = u.conforms(post(access.Agent, begin).want(ok).has("lockkeeper")).header.Get("Mcp-Session-Id")
	u.conforms(post(access.Agent, `{"jsonrpc":"2.0","method":"notifications/initialized"}`).want(http.StatusAccepted))
	claim := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"claim","arguments":{"paths":["app/models/tour.rb"]}}}`
	post("", claim).want(http.StatusUnauthorized, codeUnauthorized)
	post(access.Operator, claim).want(http.StatusForbidden) // the session belongs to another caller
	u.as(access.Agent, "GET", "/api/v1/check?write=app/models/tour.rb", nil).want(ok).has(`"free":true`)
	u.conforms(post(access.Agent, claim).want(ok).has("app/models/tour.rb"))
	u.as(access.Agent, "GET", "/api/v1/check?write=app/models/tour.rb", nil).want(ok).has(`"free":false`)

	end := func(role access.Role) answer {
		return u.as(role, "DELETE", "/mcp", nil, header("Mcp-Session-Id", session))
	}
	end("").want(http.StatusUnauthorized, codeUnauthorized)
	end(access.Operator).want(http.StatusForbidden)
	u.conforms(end(access.Agent).want(http.StatusNoContent))
	post(access.Agent, claim).want(http.StatusNotFound)
	if a := u.as(access.Agent, "GET", "/mcp", nil).want(http.StatusMethodNotAllowed, codeMethod); a.header.Get("Allow") != "POST, DELETE" {
		u.t.Errorf("allowed: %s", a.header.Get("Allow"))
	}
}

// tourLFS sends requests as git-lfs does, with the token as a password or as a bearer token.
func (u *tour) tourLFS() {
	u.t.Helper()
	ask := func(role access.Role, method, path, body string) answer {
		u.t.Helper()
		return u.send(method, lfs.Prefix+path, body, header("Content-Type", lfs.Media), func(r *http.Request) {
			if role != "" {
				r.SetBasicAuth("git", u.tokens[role])
			}
		})
	}
	const file = `{"path":"app/models/art.rb"}`
	for _, at := range [][2]string{{"GET", "locks"}, {"POST", "locks"}, {"POST", "locks/verify"}, {"POST", "locks/x/unlock"}, {"POST", "objects/batch"}} {
		ask("", at[0], at[1], file).want(http.StatusUnauthorized).has(`"message":"not logged in`)
	}
	ask(access.Viewer, "POST", "locks", file).want(http.StatusForbidden).has("the-viewer")
	ask(access.Agent, "POST", "locks", file).want(http.StatusForbidden).has("the-agent")
	var got struct{ Lock lfs.Lock }
	u.conforms(ask(access.Operator, "POST", "locks", file).want(http.StatusCreated)).into(&got)
	u.conforms(ask(access.Admin, "POST", "locks", file).want(http.StatusConflict).has("the-operator"))
	u.conforms(ask(access.Viewer, "GET", "locks", "").want(ok).has(got.Lock.ID))
	u.conforms(ask(access.Operator, "POST", "locks/verify", "{}").want(ok).has(`"ours":[{`))
	unlock := fmt.Sprintf("locks/%s/unlock", got.Lock.ID)
	u.conforms(ask(access.Admin, "POST", unlock, "{}").want(http.StatusForbidden).has("the-operator"))
	u.conforms(ask(access.Agent, "POST", unlock, `{"force":true}`).want(http.StatusForbidden))
	u.conforms(ask(access.Admin, "POST", unlock, `{"force":true}`).want(ok).has(got.Lock.ID))
	u.conforms(ask(access.Operator, "POST", unlock, "{}").want(http.StatusNotFound))
	u.conforms(ask(access.Viewer, "POST", "objects/batch", "{}").want(http.StatusNotImplemented))
	u.as(access.Viewer, "GET", lfs.Prefix+"locks", nil).want(ok).has(`"locks":[`) // with the token as a bearer
}
