//go:build agents

package agents_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"lockkeeper/internal/agent"
	"lockkeeper/internal/agent/sandbox"
	"lockkeeper/internal/agent/scriptedapi"
)

// builtDir is where the program is built for the tests of hooks. It is removed after them.
var builtDir = filepath.Join(os.TempDir(), fmt.Sprint("lockkeeper-hooks-", os.Getpid()))

// built builds the program once and returns its path.
var built = sync.OnceValues(func() (string, error) {
	binary := filepath.Join(builtDir, "lockkeeper")
	out, err := exec.Command("go", "build", "-o", binary, "lockkeeper/cmd/lockkeeper").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("build: %w\n%s", err, out)
	}
	return binary, err
})

// A hooked is a stage whose directory is a codebase with locks and hooks for Claude Code.
type hooked struct {
	*stage
	binary, settings string
}

const posts, users = "app/posts.rb", "app/users.rb"

func newHooked(t *testing.T, script func(root string) []scriptedapi.Play) *hooked {
	t.Helper()
	claudeProgram(t)
	binary, err := built()
	if err != nil {
		t.Fatal(err)
	}
	h := &hooked{stage: newStage(t, script), binary: binary}
	write(t, filepath.Join(h.dir, posts), "class Posts\nend\n")
	write(t, filepath.Join(h.dir, users), "class Users\nend\n")
	write(t, filepath.Join(h.dir, "note.ipynb"), `{"cells":[{"cell_type":"code","id":"c1","metadata":{},"outputs":[],"execution_count":null,"source":["1"]}],"metadata":{},"nbformat":4,"nbformat_minor":5}`)
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=n", "-c", "user.email=n@example.org", "commit", "-q", "-m", "x"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = h.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v %s", args, err, out)
		}
	}
	if out, err := h.lockkeeper(nil, "init"); err != nil {
		t.Fatalf("init: %v %s", err, out)
	}
	hook := []any{map[string]any{"type": "command", "command": binary + " hook claude-code", "timeout": 30}}
	events := map[string]any{}
	for event, matcher := range map[string]string{"PreToolUse": "Edit|Write|MultiEdit|NotebookEdit|Bash", "PostToolUse": "Read|Edit|Write|MultiEdit|NotebookEdit|Bash",
		"PostToolUseFailure": "Bash", "SessionStart": "", "UserPromptSubmit": "", "SubagentStop": "", "Stop": "", "SessionEnd": ""} {
		events[event] = []any{map[string]any{"matcher": matcher, "hooks": hook}}
	}
	text, err := json.Marshal(map[string]any{"hooks": events})
	if err != nil {
		t.Fatal(err)
	}
	h.settings = filepath.Join(h.root, "settings.json")
	write(t, h.settings, string(text))
	return h
}

func (h *hooked) environment() []string {
	return append(h.stage.environment(), "XDG_STATE_HOME="+filepath.Join(h.root, "state"), "USER=person", "ALLOWED_WRITE_PATHS=app")
}

func (h *hooked) lockkeeper(input []byte, args ...string) (string, error) {
	cmd := exec.Command(h.binary, args...)
	cmd.Dir, cmd.Env, cmd.Stdin = h.dir, h.environment(), bytes.NewReader(input)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// otter sends a hook event of another session that works on a file.
func (h *hooked) otter(t *testing.T, event, tool string, input map[string]any) string {
	t.Helper()
	call, err := json.Marshal(map[string]any{"session_id": "otter", "cwd": h.dir, "hook_event_name": event, "tool_name": tool, "tool_use_id": "t", "tool_input": input, "prompt": "rate-limit posts"})
	if err != nil {
		t.Fatal(err)
	}
	out, err := h.lockkeeper(call, "hook", "claude-code")
	if err != nil {
		t.Fatalf("%s %s: %v %s", event, tool, err, out)
	}
	return out
}

// holds makes the other session edit a file, so that it holds the file.
func (h *hooked) holds(t *testing.T, file, content string) {
	t.Helper()
	input := map[string]any{"file_path": filepath.Join(h.dir, file)}
	h.otter(t, "UserPromptSubmit", "", nil)
	h.otter(t, "PreToolUse", "Edit", input)
	write(t, filepath.Join(h.dir, file), content)
	h.otter(t, "PostToolUse", "Edit", input)
}

// claude runs Claude Code with the hooks and additional arguments.
func (h *hooked) claude(ctx context.Context, prompt string, files string, more ...string) (agent.Result, error) {
	r := agent.Request{Prompt: prompt, Dir: h.dir, Env: h.environment(), Permission: agent.PermitAll}
	argv := append([]string{h.program, "--settings", h.settings}, more...)
	return agent.Call(ctx, agent.Claude{Argv: argv}, r, agent.Files{Output: files + ".jsonl", Log: files + ".log"}, h.options(sandbox.Level{}))
}

const refused = `REFUSED app/posts\.rb: held by \S+ .*"rate-limit posts"`

// Whichever tool the real Claude Code uses to write a file that another session holds, the
// refusal names the holder and says what to do.
//
// shows: GP-5 CF-15
func TestHookRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		first []scriptedapi.Tool
		tool  scriptedapi.Tool
		want  string
	}{
		"Write":        {[]scriptedapi.Tool{scriptedapi.Read("{dir}/" + posts)}, scriptedapi.Write("{dir}/"+posts, "mine\n"), refused},
		"Edit":         {[]scriptedapi.Tool{scriptedapi.Read("{dir}/" + posts)}, scriptedapi.Edit("{dir}/"+posts, "class", "klass"), refused},
		"heredoc":      {nil, scriptedapi.Bash("cat > app/posts.rb <<'E'\nmine\nE"), refused},
		"sed -i":       {nil, scriptedapi.Bash("sed -i s/class/klass/ app/*.rb"), refused},
		"Python":       {nil, scriptedapi.Bash(`python3 -c "open('app/posts.rb','w').write('mine')"`), refused},
		"background":   {nil, scriptedapi.Tool{Name: "Bash", Input: map[string]any{"command": "sleep 0.2; echo mine > app/posts.rb", "description": "later", "run_in_background": true}}, refused},
		"git stash":    {nil, scriptedapi.Bash("git stash"), `REFUSED git stash: it rewrites the files or the branch that others work on: app/posts\.rb`},
		"switched off": {nil, scriptedapi.Bash("lockkeeper off 30m"), `REFUSED lockkeeper off 30m: only a person`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps := []scriptedapi.Step{}
			if test.first != nil {
				steps = append(steps, use(test.first...))
			}
			steps = append(steps, use(test.tool), scriptedapi.Step{Expect: `(?s)^[^/\[]*` + test.want, Text: "I was told."}) // nothing before the refusal names the hook's command
			h := newHooked(t, play(steps...))
			h.holds(t, posts, "class Posts # otter\nend\n")
			res, err := h.claude(t.Context(), "Change the posts", filepath.Join(h.traces, "b"))
			if err != nil || res.Text != "I was told." {
				t.Fatalf("%v %q\n%s", err, res.Text, read(t, filepath.Join(h.traces, "b.jsonl")))
			}
			if got := read(t, filepath.Join(h.dir, posts)); got != "class Posts # otter\nend\n" {
				t.Errorf("it holds %q", got)
			}
		})
	}
}

// Writes to a notebook and writes by a subagent are claimed and refused in the same way.
func TestHookNotebookAndSubagent(t *testing.T) {
	t.Parallel()
	t.Run("NotebookEdit", func(t *testing.T) {
		t.Parallel()
		h := newHooked(t, play(
			use(scriptedapi.Read("{dir}/note.ipynb")),
			use(scriptedapi.Tool{Name: "NotebookEdit", Input: map[string]any{"notebook_path": "{dir}/note.ipynb", "cell_id": "c1", "new_source": "2"}}),
			scriptedapi.Step{Expect: `REFUSED note\.ipynb: held by`, Text: "I was told."}))
		h.otter(t, "PreToolUse", "NotebookEdit", map[string]any{"notebook_path": filepath.Join(h.dir, "note.ipynb")})
		res, err := h.claude(t.Context(), "Change the notebook", filepath.Join(h.traces, "b"))
		if err != nil || res.Text != "I was told." {
			t.Fatalf("%v %q\n%s", err, res.Text, read(t, filepath.Join(h.traces, "b.jsonl")))
		}
	})
	t.Run("subagent", func(t *testing.T) {
		t.Parallel()
		h := newHooked(t, plays(
			scriptedapi.Play{Prompt: `^Inner`, Steps: []scriptedapi.Step{use(scriptedapi.Bash("echo mine > app/posts.rb")), {Expect: refused, Text: "the subagent was told"}}},
			scriptedapi.Play{Prompt: `^Outer`, Steps: []scriptedapi.Step{
				use(scriptedapi.Tool{Name: "Agent", Input: map[string]any{"description": "inner work", "prompt": "Inner work", "subagent_type": "general-purpose", "run_in_background": false}}),
				{Expect: "the subagent was told", Text: "I was told."}}}))
		h.holds(t, posts, "class Posts # otter\nend\n")
		res, err := h.claude(t.Context(), "Outer work", filepath.Join(h.traces, "b"))
		if err != nil || res.Text != "I was told." {
			t.Fatalf("%v %q\n%s", err, res.Text, read(t, filepath.Join(h.traces, "b.jsonl")))
		}
		if got := read(t, filepath.Join(h.dir, posts)); got != "class Posts # otter\nend\n" {
			t.Errorf("it holds %q", got)
		}
	})
	t.Run("subagent in the background", func(t *testing.T) {
		t.Parallel()
		h := newHooked(t, plays(
			scriptedapi.Play{Prompt: `^Inner`, Steps: []scriptedapi.Step{
				use(scriptedapi.Bash("echo inner >> app/posts.rb; touch begun")),
				use(scriptedapi.Bash("for i in $(seq 200); do test -e tried && break; sleep 0.1; done")), {Text: "the subagent is done"}}},
			scriptedapi.Play{Prompt: `^Outer`, Steps: []scriptedapi.Step{
				use(scriptedapi.Tool{Name: "Agent", Input: map[string]any{"description": "inner work", "prompt": "Inner work", "subagent_type": "general-purpose", "run_in_background": true}}),
				use(scriptedapi.Bash("for i in $(seq 200); do test -e begun && break; sleep 0.1; done")),
				{Text: "Started."}}},
			scriptedapi.Play{Steps: []scriptedapi.Step{{Text: "Noted."}}})) // what the program says when the subagent ends
		ended := h.signals(t, "Stop")
		done := make(chan error, 1)
		go func() {
			_, err := h.claude(t.Context(), "Outer work", filepath.Join(h.traces, "b"))
			done <- err
		}()
		ended()
		call, err := json.Marshal(map[string]any{"session_id": "otter", "cwd": h.dir, "hook_event_name": "PreToolUse", "tool_name": "Edit", "tool_use_id": "t", "tool_input": map[string]any{"file_path": filepath.Join(h.dir, posts)}})
		if err != nil {
			t.Fatal(err)
		}
		if out, err := h.lockkeeper(call, "hook", "claude-code"); err != nil || !strings.Contains(out, "REFUSED app/posts.rb: held by") {
			t.Errorf("another session gets the file while the subagent works: %v\n%s", err, out)
		}
		write(t, filepath.Join(h.dir, "tried"), "")
		if err := <-done; err != nil {
			t.Fatalf("%v\n%s", err, read(t, filepath.Join(h.traces, "b.jsonl")))
		}
		if status, err := h.lockkeeper(nil, "status", "--json"); err != nil || !strings.Contains(status, `"held": []`) {
			t.Errorf("%v %s", err, status)
		}
	})
	t.Run("two subagents at once", func(t *testing.T) {
		t.Parallel()
		inner := func(name string) scriptedapi.Tool {
			return scriptedapi.Tool{Name: "Agent", Input: map[string]any{"description": "inner work", "prompt": name + " work", "subagent_type": "general-purpose", "run_in_background": false}}
		}
		h := newHooked(t, plays(
			scriptedapi.Play{Prompt: `^First`, Steps: []scriptedapi.Step{
				use(scriptedapi.Bash("echo first >> app/posts.rb; touch app/written")),
				use(scriptedapi.Bash("for i in $(seq 200); do test -e app/told && break; sleep 0.1; done")), {Text: "the first is done"}}},
			scriptedapi.Play{Prompt: `^Second`, Steps: []scriptedapi.Step{
				use(scriptedapi.Bash("for i in $(seq 200); do test -e app/written && break; sleep 0.1; done")),
				use(scriptedapi.Bash("echo second >> app/posts.rb")),
				{Expect: `REFUSED app/posts\.rb: another subagent of this session \(general-purpose\) is working on it`, Tools: []scriptedapi.Tool{scriptedapi.Bash("touch app/told")}},
				{Text: "the second was told"}}},
			scriptedapi.Play{Prompt: `^Outer`, Steps: []scriptedapi.Step{
				use(inner("First"), inner("Second")),
				{Expect: "(?s)the (first is done|second was told).*the (first is done|second was told)", Tools: []scriptedapi.Tool{scriptedapi.Bash("echo outer >> app/posts.rb")}},
				{Text: "Done."}}}))
		res, err := h.claude(t.Context(), "Outer work", filepath.Join(h.traces, "b"))
		if err != nil || res.Text != "Done." {
			t.Fatalf("%v %q\n%s", err, res.Text, read(t, filepath.Join(h.traces, "b.jsonl")))
		}
		if got := read(t, filepath.Join(h.dir, posts)); got != "class Posts\nend\nfirst\nouter\n" {
			t.Errorf("it holds %q", got)
		}
	})
}

// If a command writes a file unpredictably, the change is found afterwards. The model is told,
// and the change is kept.
func TestHookCompares(t *testing.T) {
	t.Parallel()
	h := newHooked(t, play(
		use(scriptedapi.Bash("./fix.sh")),
		scriptedapi.Step{Text: "Done."}))
	write(t, filepath.Join(h.dir, "fix.sh"), "#!/bin/sh\nf=app/po; echo mine > ${f}sts.rb\n")
	if err := os.Chmod(filepath.Join(h.dir, "fix.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	h.holds(t, posts, "class Posts # otter\nend\n")
	res, err := h.claude(t.Context(), "Run it", filepath.Join(h.traces, "b"))
	if err != nil || res.Text != "Done." {
		t.Fatalf("%v %q\n%s", err, res.Text, read(t, filepath.Join(h.traces, "b.jsonl")))
	}
	asked := h.api.Requests()
	if last := string(asked[len(asked)-1].Body); !strings.Contains(last, "UNCOVERED app/posts.rb was changed while your command ran") {
		t.Errorf("the model is not told:\n%s", last[max(0, len(last)-3000):])
	}
	if kept, err := h.lockkeeper(nil, "rescue", "list"); err != nil || !strings.Contains(kept, posts) {
		t.Errorf("%v %s", err, kept)
	}
}

// With --bare, Claude Code runs no hooks and the write succeeds. The holder of the file is told
// with its next call, and its own version is kept.
func TestHookBare(t *testing.T) {
	t.Parallel()
	h := newHooked(t, play(use(scriptedapi.Bash("echo bare > app/posts.rb")), scriptedapi.Step{Text: "Done."}))
	h.holds(t, posts, "class Posts # otter\nend\n")
	res, err := h.claude(t.Context(), "Write it", filepath.Join(h.traces, "b"), "--bare")
	if err != nil || res.Text != "Done." {
		t.Fatalf("%v %q\n%s", err, res.Text, read(t, filepath.Join(h.traces, "b.jsonl")))
	}
	if got := read(t, filepath.Join(h.dir, posts)); got != "bare\n" {
		t.Fatalf("it holds %q: hooks are run under --bare by now, which docs/hooks.md has to say", got)
	}
	told := h.otter(t, "PreToolUse", "Edit", map[string]any{"file_path": filepath.Join(h.dir, users)})
	if !strings.Contains(told, "DISTURBED app/posts.rb") || !strings.Contains(told, "Your version is kept") {
		t.Errorf("the holder is not told: %s", told)
	}
}

// Two sessions of the real Claude Code work at once. The second is refused the file that the
// first holds and works on another. No lock is held when both have ended.
func TestHookTwoSessions(t *testing.T) {
	t.Parallel()
	h := newHooked(t, plays(
		scriptedapi.Play{Prompt: "^First", Steps: []scriptedapi.Step{
			use(scriptedapi.Read("{dir}/" + posts)),
			use(scriptedapi.Edit("{dir}/"+posts, "class Posts", "class Posts # first")),
			use(scriptedapi.Bash("touch begun; while [ ! -e over ]; do sleep 0.05; done")),
			{Text: "First is done."}}},
		scriptedapi.Play{Prompt: "^Second", Steps: []scriptedapi.Step{
			use(scriptedapi.Bash("while [ ! -e begun ]; do sleep 0.05; done")),
			use(scriptedapi.Read("{dir}/" + posts)),
			use(scriptedapi.Edit("{dir}/"+posts, "end", "fin")),
			{Expect: `REFUSED app/posts\.rb: held by \S+ .*"First of two"`, Tools: []scriptedapi.Tool{scriptedapi.Read("{dir}/" + users)}},
			use(scriptedapi.Edit("{dir}/"+users, "class Users", "class Users # second")),
			use(scriptedapi.Bash("touch over")),
			{Text: "Second is done."}}}))
	results := map[string]string{}
	var mu sync.Mutex
	var both sync.WaitGroup
	for _, prompt := range []string{"First of two", "Second of two"} {
		both.Go(func() {
			res, err := h.claude(t.Context(), prompt, filepath.Join(h.traces, prompt[:5]))
			mu.Lock()
			defer mu.Unlock()
			results[prompt] = fmt.Sprint(res.Text, err)
		})
	}
	both.Wait()
	if results["First of two"] != "First is done.<nil>" || results["Second of two"] != "Second is done.<nil>" {
		t.Fatalf("%v", results)
	}
	for file, want := range map[string]string{posts: "class Posts # first\nend\n", users: "class Users # second\nend\n"} {
		if got := read(t, filepath.Join(h.dir, file)); got != want {
			t.Errorf("%s: %q", file, got)
		}
	}
	if status, err := h.lockkeeper(nil, "status", "--json"); err != nil || !strings.Contains(status, `"held": []`) {
		t.Errorf("%v %s", err, status)
	}
}

// If a command of the real Claude Code unpredictably removes a person's uncommitted file, a
// copy is kept. The model is told how to restore it.
//
// shows: GP-5
func TestHookKeepsUncommitted(t *testing.T) {
	t.Parallel()
	h := newHooked(t, play(use(scriptedapi.Bash("find . -name 'notes*' -delete")), scriptedapi.Step{Text: "Done."}))
	write(t, filepath.Join(h.dir, "notes.txt"), "a person's\n")
	res, err := h.claude(t.Context(), "Clean up", filepath.Join(h.traces, "b"))
	if err != nil || res.Text != "Done." {
		t.Fatalf("%v %q\n%s", err, res.Text, read(t, filepath.Join(h.traces, "b.jsonl")))
	}
	asked := h.api.Requests()
	if last := string(asked[len(asked)-1].Body); !strings.Contains(last, "REMOVED notes.txt while your command ran") || !strings.Contains(last, "lockkeeper rescue restore ") {
		t.Errorf("the model is not told:\n%s", last[max(0, len(last)-3000):])
	}
	var kept []struct{ ID, Path string }
	out, err := h.lockkeeper(nil, "rescue", "list", "--json")
	if err == nil {
		err = json.Unmarshal([]byte(out), &kept)
	}
	if err != nil || len(kept) != 1 || kept[0].Path != "notes.txt" {
		t.Fatalf("%v %s", err, out)
	}
	if out, err := h.lockkeeper(nil, "rescue", "restore", kept[0].ID); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if got := read(t, filepath.Join(h.dir, "notes.txt")); got != "a person's\n" {
		t.Errorf("it holds %q", got)
	}
}
