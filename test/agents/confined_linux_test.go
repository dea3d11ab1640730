//go:build agents

package agents_test

import (
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper/internal/agent"
	"lockkeeper/internal/agent/scriptedapi"
)

// Codex and the Gemini CLI work in the sandbox as Claude Code does. Their tools change files in
// the workspace and cannot read files that the sandbox does not name.
//
// shows: GP-5
func TestOthersWorkConfined(t *testing.T) {
	t.Parallel()
	type input = map[string]any
	for name, test := range map[string]struct {
		variable string
		tool     func(command string) scriptedapi.Tool
		ask      func(h *hooked, t *testing.T) (agent.Adapter, agent.Request)
	}{
		"codex": {codexVariable, execCommand, func(h *hooked, t *testing.T) (agent.Adapter, agent.Request) { return h.codex("Change the posts") }},
		"gemini": {geminiVariable, func(command string) scriptedapi.Tool {
			return scriptedapi.Tool{Name: "run_shell_command", Input: input{"command": command}}
		}, func(h *hooked, t *testing.T) (agent.Adapter, agent.Request) { return h.gemini(t, "Change the posts") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			level := machine(t)
			h := freshFor(t, programOf(t, test.variable), func(root string) []scriptedapi.Play {
				return play(use(test.tool("echo mine > app/new.rb; cat "+filepath.Join(root, "secret"))), scriptedapi.Step{Text: "Done."})(root)
			})
			write(t, filepath.Join(h.root, "secret"), "do not read this\n")
			write(t, filepath.Join(h.dir, "app/posts.rb"), "class Posts\nend\n")
			a, r := test.ask(h, t)
			r.Env = append(r.Env, "GEMINI_CLI_TRUST_WORKSPACE=true")
			trace := filepath.Join(h.traces, "confined")
			res, err := agent.Call(t.Context(), a, r, agent.Files{Output: trace + ".jsonl", Log: trace + ".log"}, agent.Options{Run: confined(level, h.confinement()), Timeout: longest})
			if err != nil || res.Text != "Done." {
				t.Fatalf("%v %q\n%s\n%s", err, res.Text, read(t, trace+".jsonl"), read(t, trace+".log"))
			}
			if got := read(t, filepath.Join(h.dir, "app/new.rb")); got != "mine\n" {
				t.Errorf("%q", got)
			}
			for _, request := range h.api.Requests() {
				if strings.Contains(string(request.Body), "do not read this") {
					t.Error("it read what is not named")
				}
			}
		})
	}
}
