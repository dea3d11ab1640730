//go:build agents

package agents_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper/internal/agent"
	"lockkeeper/internal/agent/scriptedapi"
)

// geminiSettings keep the real Gemini CLI from asking for a login and from sending telemetry.
const geminiSettings = `{"security":{"auth":{"selectedType":"gemini-api-key"}},"general":{"enableAutoUpdate":false},"privacy":{"usageStatisticsEnabled":false}}`

func (h *hooked) gemini(t *testing.T, prompt string) (agent.Adapter, agent.Request) {
	t.Helper()
	file, settings := filepath.Join(h.home, ".gemini/settings.json"), geminiSettings
	if _, err := os.Stat(file); err == nil { // it has the hooks of init
		settings = begin(strings.TrimSuffix(strings.TrimPrefix(geminiSettings, "{"), "}") + ",")(read(t, file))
	}
	write(t, file, settings)
	env := append(h.environment(), "GEMINI_API_KEY=not-a-real-key", "GOOGLE_GEMINI_BASE_URL="+h.api.URL, "GEMINI_CLI_NO_RELAUNCH=true",
		"PATH="+filepath.Dir(h.binary)+":"+filepath.Dir(nodeProgram(t))+":/usr/bin:/bin")
	// With a fixed model, the CLI does not ask another model which one to use.
	return agent.Gemini{Argv: []string{h.program}}, agent.Request{Prompt: prompt, Dir: h.dir, Env: env, Permission: agent.PermitAll, Model: "gemini-2.5-flash"}
}

// nodeProgram returns the node binary that runs the Gemini CLI.
func nodeProgram(t *testing.T) string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	return node
}

func geminiTool(name string, input map[string]any, want string) asked {
	return asked{scriptedapi.Tool{Name: name, Input: input}, want}
}

// In a trusted folder, the real Gemini CLI is refused files that another session holds,
// whichever tool it uses. Free files are claimed, and released with the turn. The MCP server
// that init registered belongs to the same session.
//
// shows: GP-5 CF-15 DL-72
func TestEnrolledGemini(t *testing.T) {
	t.Parallel()
	type input = map[string]any
	h := enrolled(t, "gemini", programOf(t, geminiVariable), conversation(
		geminiTool("write_file", input{"file_path": posts, "content": "mine\n"}, refused),
		geminiTool("replace", input{"file_path": posts, "instruction": "rename", "old_string": "class", "new_string": "klass"}, refused),
		geminiTool("run_shell_command", input{"command": "echo mine > app/posts.rb"}, refused),
		geminiTool("run_shell_command", input{"command": "echo mine > posts.rb", "dir_path": "app"}, refused),
		geminiTool("mcp_lockkeeper_claim", input{"paths": []any{users}}, `CLAIMED`),
		geminiTool("write_file", input{"file_path": users, "content": "class Users # gemini\nend\n"}, `REFUSED app/users\.rb.*you have not read it`),
		geminiTool("read_file", input{"file_path": users}, `class Users`),
		geminiTool("write_file", input{"file_path": users, "content": "class Users # gemini\nend\n"}, `Successfully overwrote`),
		geminiTool("mcp_lockkeeper_status", input{}, `hold app/users\.rb`),
		geminiTool("read_file", input{"file_path": "app/words.rb"}, `truncated`), // it shows only 2,000 lines
		geminiTool("write_file", input{"file_path": "app/words.rb", "content": "x\n"}, `REFUSED app/words\.rb.*you have not read it`),
	))
	write(t, filepath.Join(h.dir, "app/words.rb"), strings.Repeat("x\n", 2500))
	a, r := h.gemini(t, "Change the posts")
	h.plays(t, a, r, "I used them all.")
	h.wroteOnlyUsers(t, "class Users # gemini\nend\n")
}

// The Gemini CLI runs the hooks of a folder only if a person has trusted it. In an untrusted
// folder it ignores the settings of the project. Without a terminal it cannot ask and does not
// start. If told to skip the question, it writes unchecked. So these hooks are reported as
// advisory until a session reports. It runs the hooks of the user's settings in every folder.
func TestGeminiTrust(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		trusted bool
		own     bool // our hooks are also in the user's settings, as init writes them
		more    []string
		says    string
		left    string
	}{
		"trusted":        {trusted: true, says: "REFUSED app/posts.rb", left: othersPosts},
		"no person asks": {says: "not running in a trusted directory", left: othersPosts},
		"skipped":        {more: []string{"--skip-trust"}, says: "Done.", left: "mine\n"},
		"own settings":   {own: true, more: []string{"--skip-trust"}, says: "REFUSED app/posts.rb", left: othersPosts},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := enrolled(t, "gemini", programOf(t, geminiVariable), play(
				use(scriptedapi.Tool{Name: "write_file", Input: map[string]any{"file_path": posts, "content": "mine\n"}}), scriptedapi.Step{Text: "Done."}))
			if !test.own {
				if err := os.Remove(filepath.Join(h.home, ".gemini/settings.json")); err != nil {
					t.Fatal(err)
				}
				h.advised(t, "trust the folder")
			}
			_, r := h.gemini(t, "")
			if test.trusted {
				write(t, filepath.Join(h.home, ".gemini/trustedFolders.json"), fmt.Sprintf(`{%q: "TRUST_FOLDER"}`, h.dir))
			}
			cmd := exec.CommandContext(t.Context(), h.program, append(test.more, "--approval-mode=yolo", "--model="+r.Model, "--prompt=Change the posts")...)
			cmd.Dir, cmd.Env = r.Dir, r.Env
			out, err := cmd.CombinedOutput()
			if begun := len(h.api.Requests()) > 0; begun != (err == nil) || !strings.Contains(string(out), test.says) {
				t.Errorf("%v\n%s", err, out)
			}
			if got := read(t, filepath.Join(h.dir, posts)); got != test.left {
				t.Errorf("it holds %q: when hooks are run is otherwise by now, which docs/hooks.md and the doctor have to say\n%s", got, out)
			}
		})
	}
}

// What a background command of the real Gemini CLI changes is found with its next command.
//
// shows: GP-5
func TestGeminiIsToldAfterwards(t *testing.T) {
	t.Parallel()
	type input = map[string]any
	h := enrolled(t, "gemini", programOf(t, geminiVariable), conversation(
		geminiTool("run_shell_command", input{"command": "./fix.sh", "is_background": true}, ``),
		geminiTool("run_shell_command", input{"command": "touch go; while [ ! -e done ]; do sleep 0.1; done"}, `UNCOVERED app/posts\.rb was changed`),
	))
	write(t, filepath.Join(h.dir, "fix.sh"), "#!/bin/sh\nwhile [ ! -e go ]; do sleep 0.1; done\nf=app/po; echo computed > ${f}sts.rb; touch done\n")
	if err := os.Chmod(filepath.Join(h.dir, "fix.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	a, r := h.gemini(t, "Change the posts")
	r.Env = append(r.Env, "GEMINI_CLI_TRUST_WORKSPACE=true")
	h.plays(t, a, r, "I used them all.")
}
