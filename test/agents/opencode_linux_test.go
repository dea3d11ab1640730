//go:build agents

package agents_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper/internal/agent"
	"lockkeeper/internal/agent/scriptedapi"
)

// opencode returns a call of the real opencode, which uses only the API and asks no registry. The
// prompt is its standard input. more are further settings.
func (h *hooked) opencode(t *testing.T, prompt string, more map[string]any) (agent.Adapter, agent.Request) {
	t.Helper()
	type object = map[string]any
	settings := object{"model": "anthropic/claude-sonnet-4-5", "share": "disabled", "autoupdate": false, "formatter": false, "lsp": false,
		"provider": object{"anthropic": object{"options": object{"baseURL": h.api.URL + "/v1", "apiKey": "not-a-real-key"}}}}
	maps.Copy(settings, more)
	text, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	env := append(h.environment(), "PATH="+filepath.Dir(h.binary)+":/usr/bin:/bin", "OPENCODE_CONFIG_CONTENT="+string(text), "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1",
		"npm_config_registry="+h.api.URL, "npm_config_fetch_retries=0")
	// With a title, opencode does not ask the model for one.
	return agent.Plain{Argv: []string{h.program, "run", "--auto", "--title=test"}}, agent.Request{Prompt: prompt, Dir: h.dir, Env: env, Permission: agent.PermitAll}
}

// shellOf returns a use of opencode's shell.
func shellOf(command string) scriptedapi.Tool {
	return scriptedapi.Tool{Name: "bash", Input: map[string]any{"command": command, "description": "a step of the script"}}
}

// The real opencode is refused files that another session holds, whichever tool it uses, also by a
// subagent. Free files are claimed, and released with the turn. The MCP server that init registered
// belongs to the same session.
//
// shows: GP-5 CF-15 DL-72
func TestEnrolledOpencode(t *testing.T) {
	t.Parallel()
	type input = map[string]any
	tool := func(name string, in input) scriptedapi.Tool { return scriptedapi.Tool{Name: name, Input: in} }
	script := conversation(
		asked{tool("write", input{"filePath": "{dir}/" + posts, "content": "mine\n"}), "^" + refused},
		asked{tool("edit", input{"filePath": posts, "oldString": "class", "newString": "klass"}), "^" + refused},
		asked{shellOf("echo mine > app/posts.rb"), "^" + refused},
		asked{tool("bash", input{"command": "echo mine > posts.rb", "workdir": "{dir}/app", "description": "a step of the script"}), "^" + refused},
		asked{tool("lockkeeper_claim", input{"paths": []any{users}}), `CLAIMED`},
		asked{tool("write", input{"filePath": users, "content": "class Users # opencode\nend\n"}), `REFUSED app/users\.rb.*you have not read it`},
		asked{tool("read", input{"filePath": users}), `class Users`},
		asked{tool("write", input{"filePath": users, "content": "class Users # opencode\nend\n"}), `Wrote file`},
		asked{tool("lockkeeper_status", input{}), `hold app/users\.rb`},
		asked{tool("task", input{"description": "inner work", "prompt": "Inner work", "subagent_type": "general"}), "the subagent was told"},
		asked{shellOf("./fix.sh"), `(?s)UNCOVERED app/posts\.rb was changed`},
	)
	h := enrolled(t, "opencode", programOf(t, opencodeVariable), func(root string) []scriptedapi.Play {
		inner := scriptedapi.Play{Prompt: `^Inner`, Steps: []scriptedapi.Step{use(shellOf("echo inner > app/posts.rb")), {Expect: "^" + refused, Text: "the subagent was told"}}}
		return append([]scriptedapi.Play{inner}, script(root)...)
	})
	write(t, filepath.Join(h.dir, "fix.sh"), "f=app/po; echo computed > ${f}sts.rb\n")
	if err := os.Chmod(filepath.Join(h.dir, "fix.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	a, r := h.opencode(t, "Change the posts", nil)
	h.plays(t, a, r, "I used them all.")
	if got := read(t, filepath.Join(h.dir, posts)); got != "computed\n" {
		t.Errorf("%q", got)
	}
	write(t, filepath.Join(h.dir, posts), othersPosts)
	h.wroteOnlyUsers(t, "class Users # opencode\nend\n")
	if out, err := h.lockkeeper(nil, "doctor"); err != nil || !strings.Contains(out, "tools of opencode") {
		t.Errorf("%v\n%s", err, out)
	}
}

// If the program lockkeeper is missing, the plugin refuses every write with a sentence that says so.
func TestOpencodeWithoutProgram(t *testing.T) {
	t.Parallel()
	h := enrolled(t, "opencode", programOf(t, opencodeVariable), play(use(shellOf("echo mine > app/users.rb")),
		scriptedapi.Step{Expect: "(?m)^The program lockkeeper is not installed", Text: "I was told."}))
	a, r := h.opencode(t, "Change the users", nil)
	r.Env = append(r.Env, "PATH=/usr/bin:/bin")
	text := read(t, filepath.Join(h.dir, ".opencode/plugins/lockkeeper.js"))
	write(t, filepath.Join(h.dir, ".opencode/plugins/lockkeeper.js"), strings.ReplaceAll(text, filepath.Dir(h.binary), "/nowhere"))
	h.plays(t, a, r, "I was told.")
	if got := read(t, filepath.Join(h.dir, users)); got != "class Users\nend\n" {
		t.Errorf("%q", got)
	}
}
