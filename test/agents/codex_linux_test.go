//go:build agents

package agents_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"lockkeeper/internal/agent"
	"lockkeeper/internal/agent/scriptedapi"
)

// enrolled returns a new project with two files that an agent uses. Another session holds
// app/posts.rb.
func enrolled(t *testing.T, host, program string, script func(root string) []scriptedapi.Play) *hooked {
	t.Helper()
	h := freshFor(t, program, script)
	write(t, filepath.Join(h.dir, users), "class Users\nend\n")
	if out, err := h.lockkeeper(nil, "init", host, "--yes"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	h.holds(t, posts, othersPosts)
	return h
}

const othersPosts = "class Posts # otter\nend\n"

// plays calls an agent once and checks its final text.
func (h *hooked) plays(t *testing.T, a agent.Adapter, r agent.Request, want string) {
	t.Helper()
	trace := filepath.Join(h.traces, "b")
	res, err := agent.Call(t.Context(), a, r, agent.Files{Output: trace + ".jsonl", Log: trace + ".log"}, agent.Options{Run: supervised, Timeout: longest})
	if err != nil || strings.TrimSpace(res.Text) != want {
		t.Fatalf("%v %q\n%s\n%s", err, res.Text, read(t, trace+".jsonl"), read(t, trace+".log"))
	}
	if left := running(t, h.mark); len(left) > 0 {
		t.Errorf("still running: %s", strings.Join(left, ", "))
	}
}

// wroteOnlyUsers checks that the posts are unchanged, that the users are written, and that only
// the posts are held after the turn.
func (h *hooked) wroteOnlyUsers(t *testing.T, want string) {
	t.Helper()
	for file, want := range map[string]string{posts: othersPosts, users: want} {
		if got := read(t, filepath.Join(h.dir, file)); got != want {
			t.Errorf("%s holds %q", file, got)
		}
	}
	status, err := h.lockkeeper(nil, "status", "--json")
	if err != nil || strings.Contains(status, users) || !strings.Contains(status, posts) {
		t.Errorf("%v %s", err, status)
	}
	if audit, err := h.lockkeeper(nil, "audit"); err != nil || !usersReleased.MatchString(audit) {
		t.Errorf("%v\n%s", err, audit)
	}
}

// usersReleased matches the audit record of the session's own release of the users.
var usersReleased = regexp.MustCompile(`(?m) released +\S+ +write app/users\.rb`)

// advised checks that the doctor reports an agent's writes as advisory and says what to do.
func (h *hooked) advised(t *testing.T, next string) {
	t.Helper()
	out, err := h.lockkeeper(nil, "doctor")
	if err != nil || !strings.Contains(out, "once you have trusted it") || !strings.Contains(out, next) {
		t.Errorf("%v\n%s", err, out)
	}
}

func (h *hooked) codex(prompt string) (agent.Adapter, agent.Request) {
	env := append(h.environment(), "OPENAI_API_KEY=not-a-real-key", "PATH="+filepath.Dir(h.binary)+":/usr/bin:/bin")
	provider := fmt.Sprintf(`model_providers.x={name="x",base_url="%s/v1",env_key="OPENAI_API_KEY",wire_api="responses",stream_max_retries=1,request_max_retries=1}`, h.api.URL)
	return agent.Codex{Argv: []string{h.program}}, agent.Request{Prompt: prompt, Dir: h.dir, Env: env, Permission: agent.PermitAll,
		Extra: []string{"-c", provider, "-c", "model_provider=x", "-c", "check_for_update_on_startup=false"}}
}

// asks talks to the Codex server as a person's editor would.
func (h *hooked) asks(t *testing.T, talk func(ask func(method string, params, result any))) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), h.program, "app-server")
	cmd.Dir, cmd.Env = h.dir, h.environment()
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	answers, asked := json.NewDecoder(out), 0
	ask := func(method string, params, result any) {
		t.Helper()
		asked++
		if err := json.NewEncoder(in).Encode(map[string]any{"id": asked, "method": method, "params": params}); err != nil {
			t.Fatal(err)
		}
		for {
			var a struct {
				ID     int
				Result json.RawMessage
				Error  json.RawMessage
			}
			if err := answers.Decode(&a); err != nil {
				t.Fatal(err)
			}
			if a.ID != asked {
				continue // a notification about something else
			}
			if err := json.Unmarshal(a.Result, result); err != nil {
				t.Fatalf("%s: %v %s", method, err, a.Error)
			}
			return
		}
	}
	type object = map[string]any
	ask("initialize", object{"clientInfo": object{"name": "test", "version": "1"}}, &object{})
	talk(ask)
	if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
		t.Fatal(err)
	}
}

// A codexHook is a hook that Codex reports as found.
type codexHook struct{ Key, CurrentHash, Command string }

// trustsHooks trusts the directory and its current hooks, as a person does at the first start
// of Codex and with /hooks. Codex itself lists the hooks.
func (h *hooked) trustsHooks(t *testing.T) (found []codexHook) {
	t.Helper()
	type object = map[string]any
	h.asks(t, func(ask func(method string, params, result any)) {
		set := func(place string, value object) {
			t.Helper()
			ask("config/batchWrite", object{"edits": []object{{"keyPath": place, "value": value, "mergeStrategy": "upsert"}}, "reloadUserConfig": true}, &object{})
		}
		set("projects", object{h.dir: object{"trust_level": "trusted"}})
		var listed struct{ Data []struct{ Hooks []codexHook } }
		ask("hooks/list", object{"cwds": []string{h.dir}}, &listed)
		state := object{}
		for _, d := range listed.Data {
			for _, hook := range d.Hooks {
				state[hook.Key] = object{"trusted_hash": hook.CurrentHash}
				if strings.Contains(hook.Command, "lockkeeper hook codex") {
					found = append(found, hook)
				}
			}
		}
		set("hooks.state", state)
	})
	return found
}

func patchOf(file, from, to string) string {
	return "*** Begin Patch\n*** Update File: " + file + "\n@@\n-" + from + "\n+" + to + "\n*** End Patch\n"
}

// applyPatch, execCommand and script return uses of the tools of Codex. Models use the first
// two directly, or from a script as current models do.
func applyPatch(patch string) scriptedapi.Tool {
	return scriptedapi.Tool{Name: "apply_patch", Text: patch}
}

func execCommand(command string) scriptedapi.Tool {
	return scriptedapi.Tool{Name: "exec_command", Input: map[string]any{"cmd": command}}
}

func script(tool string, input any) scriptedapi.Tool {
	text, err := json.Marshal(input)
	if err != nil {
		panic(err) // cannot happen: it is a string or a map
	}
	return scriptedapi.Tool{Name: "exec", Text: fmt.Sprintf("text(JSON.stringify(await tools.%s(%s)));", tool, text)}
}

// Once a person has trusted the hooks that init wrote, the real Codex is refused files that
// another session holds, whichever tool it uses. Free files are claimed, and released with the
// turn. The MCP server that init registered belongs to the same session.
//
// shows: GP-5 CF-15 DL-72
func TestEnrolledCodex(t *testing.T) {
	t.Parallel()
	own := patchOf(users, "class Users", "class Users # codex")
	others := patchOf(posts, "class Posts # otter", "class Posts # codex")
	h := enrolled(t, "codex", programOf(t, codexVariable), conversation(
		asked{applyPatch(others), refused},
		asked{execCommand("echo mine > app/posts.rb"), refused},
		asked{script("apply_patch", others), refused},
		asked{script("exec_command", map[string]any{"cmd": "echo mine > posts.rb", "workdir": "app"}), refused},
		asked{script("mcp__lockkeeper__claim", map[string]any{"paths": []string{posts}}), `REFUSED app/posts\.rb: held by`},
		asked{script("mcp__lockkeeper__claim", map[string]any{"paths": []string{users}}), `CLAIMED`},
		asked{applyPatch(own), `Success`},
		asked{script("mcp__lockkeeper__status", map[string]any{}), `hold app/users\.rb.*"agent":"codex"`},
	))
	if found := h.trustsHooks(t); len(found) != 5 {
		t.Fatalf("codex finds these hooks: %v", found)
	}
	a, r := h.codex("Change the posts")
	h.plays(t, a, r, "I used them all.")
	h.wroteOnlyUsers(t, "class Users # codex\nend\n")
}

// No hook sees input that Codex types into an open shell. The change is found at its next
// command: the model is told, and the change is kept.
func TestCodexShellKeptOpen(t *testing.T) {
	t.Parallel()
	h := enrolled(t, "codex", programOf(t, codexVariable), play(
		use(scriptedapi.Tool{Name: "exec", Text: `const shell = await tools.exec_command({cmd: "sh", tty: true, yield_time_ms: 250});
			await tools.write_stdin({session_id: shell.session_id, chars: "echo mine > app/posts.rb; exit\n", yield_time_ms: 250});`}),
		use(execCommand("true")),
		scriptedapi.Step{Text: "Done."}))
	if found := h.trustsHooks(t); len(found) != 5 {
		t.Fatalf("codex finds these hooks: %v", found)
	}
	a, r := h.codex("Change the posts")
	h.plays(t, a, r, "Done.")
	if got := read(t, filepath.Join(h.dir, posts)); got != "mine\n" {
		t.Fatalf("it holds %q: what is typed into a shell is shown to hooks by now, which docs/hooks.md has to say", got)
	}
	list := h.api.Requests()
	if last := string(list[len(list)-1].Body); !strings.Contains(last, "UNCOVERED app/posts.rb was changed") {
		t.Errorf("the model is not told:\n%s", last[max(0, len(last)-3000):])
	}
	if kept, err := h.lockkeeper(nil, "rescue", "list"); err != nil || !strings.Contains(kept, posts) {
		t.Errorf("%v %s", err, kept)
	}
}

// Codex skips untrusted hooks without a message, so they are reported as advisory until a
// session reports.
func TestCodexSkipsUntrustedHooks(t *testing.T) {
	t.Parallel()
	h := enrolled(t, "codex", programOf(t, codexVariable), play(use(execCommand("echo mine > app/posts.rb")), scriptedapi.Step{Text: "Done."}))
	a, r := h.codex("Change the posts")
	h.plays(t, a, r, "Done.")
	if got := read(t, filepath.Join(h.dir, posts)); got != "mine\n" {
		t.Fatalf("it holds %q: untrusted hooks are run by now, which docs/hooks.md and the doctor have to say", got)
	}
	h.advised(t, "trust the hooks with /hooks")
}
