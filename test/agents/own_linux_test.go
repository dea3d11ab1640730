//go:build agents

package agents_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockkeeper/internal/agent"
	"lockkeeper/internal/agent/owndir"
	"lockkeeper/internal/agent/sandbox"
	"lockkeeper/internal/agent/scriptedapi"
)

// At every level of the sandbox, the real programs use a copy of their own directory. They obey
// its settings and leave the original unchanged.
//
// shows: GP-5
func TestOwnDirectory(t *testing.T) {
	for name, test := range map[string]struct {
		variable, dir, instructions string
		ask                         func(h *hooked, t *testing.T) (agent.Adapter, agent.Request)
	}{
		"claude": {claudeVariable, ".claude", "CLAUDE.md", func(h *hooked, t *testing.T) (agent.Adapter, agent.Request) {
			return agent.Claude{Argv: []string{h.program}}, h.request("Say something")
		}},
		"codex": {codexVariable, ".codex", "AGENTS.md", func(h *hooked, t *testing.T) (agent.Adapter, agent.Request) { return h.codex("Say something") }},
		"gemini": {geminiVariable, ".gemini", "GEMINI.md", func(h *hooked, t *testing.T) (agent.Adapter, agent.Request) {
			a, r := h.gemini(t, "Say something")
			r.Env = append(r.Env, "GEMINI_CLI_TRUST_WORKSPACE=true")
			return a, r
		}},
	} {
		for at, level := range levelsOf(t) {
			t.Run(name+", "+at, func(t *testing.T) {
				h := freshFor(t, programOf(t, test.variable), play(scriptedapi.Step{Text: "Done."}))
				a, r := test.ask(h, t)
				write(t, filepath.Join(h.home, test.dir, test.instructions), "The bird of the house is a heron.\n")
				write(t, filepath.Join(h.home, test.dir, "skills/ring/SKILL.md"), "---\nname: ring\ndescription: Rings a bittern\n---\nRing it.\n")
				before := readTree(t, filepath.Join(h.home, test.dir))
				res, err := h.callOwn(t, name, level, a, r)
				if err != nil || res.Text != "Done." {
					t.Fatalf("%v %q", err, res.Text)
				}
				if after := readTree(t, filepath.Join(h.home, test.dir)); !maps.Equal(before, after) {
					t.Errorf("it was\n%q\nand is\n%q", slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
				}
				asked := ""
				for _, r := range h.api.Requests() {
					asked += string(r.Body)
				}
				if !strings.Contains(asked, "is a heron") {
					t.Errorf("it does not know its instructions: %.300s", asked)
				}
				if !strings.Contains(asked, "Rings a bittern") {
					t.Errorf("it does not know its skills: %.300s", asked)
				}
			})
		}
	}
}

// If Codex renews an old login under its private directory, the new login is copied to the
// person's own directory.
func TestOwnLogin(t *testing.T) {
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	token := func(name string, until int) string {
		return part(`{"alg":"none"}`) + "." + part(fmt.Sprintf(`{"exp":%d,"jti":%q,"email":"ann@example.org","https://api.openai.com/auth":{"chatgpt_account_id":"a","chatgpt_plan_type":"pro"}}`, until, name)) + "." + part("s")
	}
	for at, level := range levelsOf(t) {
		t.Run(at, func(t *testing.T) {
			h := freshFor(t, programOf(t, codexVariable), play(scriptedapi.Step{Text: "Done."}))
			renewals := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"id_token":%q,"access_token":%q,"refresh_token":"renewed"}`, token("i2", 4000000000), token("a2", 4000000000))
			}))
			defer renewals.Close()
			write(t, filepath.Join(h.home, ".codex/auth.json"), fmt.Sprintf(`{"auth_mode":"chatgpt","OPENAI_API_KEY":null,"tokens":{"id_token":%q,"access_token":%q,"refresh_token":"old","account_id":"a"},"last_refresh":"2020-01-01T00:00:00Z"}`, token("i1", 1), token("a1", 1)))
			a, r := h.codex("Say something")
			r.Env = append(r.Env, "CODEX_REFRESH_TOKEN_URL_OVERRIDE="+renewals.URL)
			r.Extra = []string{"-c", fmt.Sprintf(`model_providers.x={name="x",base_url="%s/v1",requires_openai_auth=true,wire_api="responses",stream_max_retries=1,request_max_retries=1}`, h.api.URL),
				"-c", "model_provider=x", "-c", "check_for_update_on_startup=false", "-c", fmt.Sprintf("chatgpt_base_url=%q", h.api.URL)}
			res, err := h.callOwn(t, "codex", level, a, r)
			if err != nil || res.Text != "Done." {
				t.Fatalf("%v %q", err, res.Text)
			}
			if login := read(t, filepath.Join(h.home, ".codex/auth.json")); !strings.Contains(login, `"renewed"`) {
				t.Errorf("the login is %s", login)
			}
		})
	}
}

// levelsOf returns the sandbox levels of this machine by name.
func levelsOf(t *testing.T) map[string]sandbox.Level {
	t.Helper()
	levels := map[string]sandbox.Level{"best": machine(t), "none": {}}
	if version := levels["best"].Landlock; version > 0 {
		levels["Landlock alone"] = sandbox.Level{Landlock: version}
	}
	return levels
}

// callOwn makes a call with a copy of the agent's own directory, as a run does.
func (h *hooked) callOwn(t *testing.T, name string, level sandbox.Level, a agent.Adapter, r agent.Request) (agent.Result, error) {
	t.Helper()
	private := filepath.Join(h.root, "private")
	if err := os.Mkdir(private, 0o700); err != nil {
		t.Fatal(err)
	}
	env := func(variable string) (string, bool) {
		home, is := map[string]string{"HOME": h.home}[variable]
		return home, is
	}
	d := owndir.Of(name, env, filepath.Join(h.root, "lock"), func(string) bool { return true })
	own, err := d.Open(t.Context(), filepath.Join(private, "own"), func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	c := h.confinement()
	c.Write, c.Read, c.Private = []string{h.dir, h.temp, own.Write}, append(c.Read, own.Read...), private
	r.Env = own.Environ(r.Env)
	trace := filepath.Join(h.traces, "own")
	res, err := agent.Call(t.Context(), a, r, agent.Files{Output: trace + ".jsonl", Log: trace + ".log"}, agent.Options{Run: confined(level, c), Timeout: longest})
	if closing := own.Close(t.Context()); closing != nil {
		t.Fatal(closing)
	}
	if err != nil {
		t.Logf("%s\n%s", read(t, trace+".jsonl"), read(t, trace+".log"))
	}
	return res, err
}
