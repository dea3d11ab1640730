//go:build agents

package agents_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper/internal/agent"
	"lockkeeper/internal/agent/sandbox"
	"lockkeeper/internal/agent/scriptedapi"
)

// newFresh returns a project without locks. As soon as it has locks, another session holds the
// posts.
func newFresh(t *testing.T, script func(root string) []scriptedapi.Play) *hooked {
	t.Helper()
	return freshFor(t, claudeProgram(t), script)
}

// freshFor is newFresh for any program.
func freshFor(t *testing.T, program string, script func(root string) []scriptedapi.Play) *hooked {
	t.Helper()
	binary, err := built()
	if err != nil {
		t.Fatal(err)
	}
	h := &hooked{stage: stageFor(t, program, script), binary: binary}
	write(t, filepath.Join(h.dir, posts), "class Posts\nend\n")
	cmd := exec.Command("git", "init", "-q")
	cmd.Dir = h.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	return h
}

// plainClaude runs Claude Code as a person would, with only the settings that it finds.
func (h *hooked) plainClaude(ctx context.Context, prompt, files string, more ...string) (agent.Result, error) {
	env := append(h.environment(), "PATH="+filepath.Dir(h.binary)+":"+filepath.Dir(h.program)+":/usr/bin:/bin")
	r := agent.Request{Prompt: prompt, Dir: h.dir, Env: env, Permission: agent.PermitAll}
	return agent.Call(ctx, agent.Claude{Argv: append([]string{h.program}, more...)}, r, agent.Files{Output: files + ".jsonl", Log: files + ".log"}, h.options(sandbox.Level{}))
}

var askedForPosts = play(
	use(scriptedapi.Read("{dir}/"+posts)),
	use(scriptedapi.Write("{dir}/"+posts, "mine\n")),
	scriptedapi.Step{Expect: "(?s)" + refused, Text: "I was told."})

// After one command in a fresh project, the real Claude Code refuses to write a file that
// another session holds. The plugin has the same effect.
//
// shows: GP-5 CF-15
func TestEnrolledClaudeRefuses(t *testing.T) {
	t.Parallel()
	plugin, err := filepath.Abs("../../plugins/lockkeeper")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		setUp string
		more  []string
	}{
		"init claude": {setUp: "init claude --yes"},
		"the plugin":  {setUp: "init", more: []string{"--plugin-dir", plugin}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newFresh(t, askedForPosts)
			out, err := h.lockkeeper(nil, strings.Fields(test.setUp)...)
			if err != nil || test.more == nil && !strings.HasSuffix(out, "enforced: claude (hook)\n") {
				t.Fatalf("%v\n%s", err, out)
			}
			h.holds(t, posts, "class Posts # otter\nend\n")
			res, err := h.plainClaude(t.Context(), "Change the posts", filepath.Join(h.traces, "b"), test.more...)
			if err != nil || res.Text != "I was told." {
				t.Fatalf("%v %q\n%s", err, res.Text, read(t, filepath.Join(h.traces, "b.jsonl")))
			}
			if got := read(t, filepath.Join(h.dir, posts)); got != "class Posts # otter\nend\n" {
				t.Errorf("it holds %q", got)
			}
			if out, err := h.lockkeeper(nil, "doctor"); test.more == nil && err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// A session that starts in a subdirectory finds the hooks that init wrote, with each of the real
// programs, and the doctor says so. At the root a hook runs once, though it is registered twice.
//
// shows: GP-5
func TestStartedBelow(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		variable string
		steps    []scriptedapi.Step
		ask      func(t *testing.T, h *hooked) (agent.Adapter, agent.Request)
	}{
		"claude": {claudeVariable, []scriptedapi.Step{use(scriptedapi.Bash("echo mine > posts.rb"))}, func(t *testing.T, h *hooked) (agent.Adapter, agent.Request) {
			r := h.request("Change the posts")
			r.Env = append(h.environment(), "PATH="+filepath.Dir(h.binary)+":/usr/bin:/bin")
			return agent.Claude{Argv: []string{h.program}}, r
		}},
		"codex": {codexVariable, []scriptedapi.Step{use(execCommand("echo mine > posts.rb"))}, func(t *testing.T, h *hooked) (agent.Adapter, agent.Request) {
			h.trustsHooks(t)
			return h.codex("Change the posts")
		}},
		"gemini": {geminiVariable, []scriptedapi.Step{use(scriptedapi.Tool{Name: "run_shell_command", Input: map[string]any{"command": "echo mine > posts.rb"}})},
			func(t *testing.T, h *hooked) (agent.Adapter, agent.Request) {
				a, r := h.gemini(t, "Change the posts")
				r.Env = append(r.Env, "GEMINI_CLI_TRUST_WORKSPACE=true")
				return a, r
			}},
		"opencode": {opencodeVariable, []scriptedapi.Step{use(shellOf("echo mine > posts.rb"))}, func(t *testing.T, h *hooked) (agent.Adapter, agent.Request) {
			return h.opencode(t, "Change the posts", nil)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := enrolled(t, name, programOf(t, test.variable), play(append(test.steps, scriptedapi.Step{Expect: "(?s)" + refused, Text: "I was told."})...))
			if out, err := h.lockkeeper(nil, "doctor", "--json"); err != nil || !strings.Contains(out, "start in a subdirectory") {
				t.Errorf("%v\n%s", err, out)
			}
			a, r := test.ask(t, h)
			r.Dir = filepath.Join(h.dir, "app")
			h.plays(t, a, r, "I was told.")
			if got := read(t, filepath.Join(h.dir, posts)); got != othersPosts {
				t.Errorf("it holds %q", got)
			}
		})
	}
}
