package hook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockkeeper/internal/git/gittest"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session/hook"
)

// asHook makes the test binary run as a hook, so that each call is a separate process.
const asHook = "LOCKKEEPER_TEST_AS_HOOK"

func TestMain(m *testing.M) {
	if agent := os.Getenv(asHook); agent != "" {
		limit, _ := time.ParseDuration(os.Getenv(asHook + "_DEADLINE"))
		os.Exit(hook.Run(context.Background(), agent, hook.Process{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.LookupEnv, Deadline: limit}))
	}
	gittest.Alone()
	os.Exit(m.Run())
}

// A stage is a codebase with a few files.
type stage struct {
	t     *testing.T
	dir   string
	state string
	home  string
	wait  string // the deadline of calls; empty: the usual one
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, dir: filepath.Join(t.TempDir(), "repo"), state: t.TempDir(), home: t.TempDir()}
	for name, text := range map[string]string{"app/models/user.rb": "class User\nend\n", "app/models/post.rb": "class Post\nend\n",
		"app/views/users/index.erb": "<p>\n", "test/models/user_test.rb": "test\n"} {
		s.write(name, text)
	}
	if _, err := project.Init(t.Context(), s.settings(), project.InitOptions{}); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *stage) settings() project.Settings {
	return project.Settings{Dir: s.dir, Env: func(name string) (string, bool) {
		if name == "XDG_STATE_HOME" {
			return s.state, true
		}
		return "", false
	}}
}

// open opens the codebase so that a test can inspect it.
func (s *stage) open() *project.Project {
	s.t.Helper()
	a, err := project.Open(s.t.Context(), s.settings())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { a.Close() })
	return a
}

func (s *stage) at(name string) string { return filepath.Join(s.dir, name) }

func (s *stage) write(name, text string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(s.at(name)), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(s.at(name), []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) read(name string) string {
	s.t.Helper()
	text, err := os.ReadFile(s.at(name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// said is the result of a call.
type said struct {
	code     int
	out, err string
}

func (r said) all() string { return r.out + r.err }

// command returns a hook call as a process that has not been started.
func (s *stage) command(agent string, call map[string]any) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
	s.t.Helper()
	if call["cwd"] == nil {
		call["cwd"] = s.dir
	}
	input, err := json.Marshal(call)
	if err != nil {
		s.t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.CommandContext(s.t.Context(), self)
	cmd.Dir = os.TempDir() // the working directory of the hook must not matter
	cmd.Env = append(os.Environ(), asHook+"="+agent, asHook+"_DEADLINE="+s.wait, "XDG_STATE_HOME="+s.state, "HOME="+s.home, "GORACE=atexit_sleep_ms=0")
	cmd.Stdin = bytes.NewReader(input)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	return cmd, &out, &errs
}

func (s *stage) call(agent string, call map[string]any) said {
	s.t.Helper()
	cmd, out, errs := s.command(agent, call)
	err := cmd.Run()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		s.t.Fatal(err)
	}
	return heard(cmd.ProcessState.ExitCode(), out.String(), errs.String())
}

// heard returns what a host concludes from an answer: a denial on standard output refuses the
// call like exit code 2.
func heard(code int, out, errs string) said {
	var answer struct {
		Decision string `json:"decision"`
		Reason   string `json:"reason"`
		Specific struct {
			Decision string `json:"permissionDecision"`
			Reason   string `json:"permissionDecisionReason"`
		} `json:"hookSpecificOutput"`
	}
	if code == 0 && json.Unmarshal([]byte(out), &answer) == nil && (answer.Decision == "deny" || answer.Specific.Decision == "deny") {
		return said{2, "", answer.Reason + answer.Specific.Reason}
	}
	return said{code, out, errs}
}

// claude makes a call of Claude Code.
func (s *stage) claude(session, event, tool string, input map[string]any) said {
	s.t.Helper()
	call := map[string]any{"session_id": session, "hook_event_name": event, "tool_name": tool, "tool_use_id": "toolu_" + tool, "tool_input": input}
	switch event {
	case "UserPromptSubmit":
		call["prompt"] = tool
	case "SessionEnd":
		call["reason"] = tool
	}
	return s.call("claude-code", call)
}

func (s *stage) edit(session, name string) said {
	s.t.Helper()
	return s.claude(session, "PreToolUse", "Edit", map[string]any{"file_path": s.at(name), "old_string": "a", "new_string": "b"})
}

func (s *stage) edited(session, name string) said {
	s.t.Helper()
	return s.claude(session, "PostToolUse", "Edit", map[string]any{"file_path": s.at(name)})
}

func (s *stage) reads(session, name string) {
	s.t.Helper()
	s.passes(s.claude(session, "PostToolUse", "Read", map[string]any{"file_path": s.at(name)}))
}

// edits makes a session change a file, which the session then holds.
func (s *stage) edits(session, name, text string) {
	s.t.Helper()
	s.passes(s.edit(session, name))
	s.write(name, text)
	s.passes(s.edited(session, name))
}

// replace makes a session ask to write a whole file.
func (s *stage) replace(session, name string) said {
	s.t.Helper()
	return s.claude(session, "PreToolUse", "Write", map[string]any{"file_path": s.at(name), "content": "x"})
}

func (s *stage) bash(session, event, command string) said {
	s.t.Helper()
	return s.claude(session, event, "Bash", map[string]any{"command": command})
}

// runs makes a session run a command in a real shell.
func (s *stage) runs(session, command string) said {
	s.t.Helper()
	s.passes(s.bash(session, "PreToolUse", command))
	cmd := exec.CommandContext(s.t.Context(), "bash", "-c", command)
	cmd.Dir = s.dir
	out, err := cmd.CombinedOutput()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		s.t.Fatal(err)
	}
	return s.passes(s.printed(session, command, strings.TrimRight(string(out), "\n")))
}

// printed reports the end of a command with its output.
func (s *stage) printed(session, command, text string) said {
	s.t.Helper()
	return s.call("claude-code", map[string]any{"session_id": session, "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_use_id": "toolu_Bash",
		"tool_input": map[string]any{"command": command}, "tool_response": map[string]any{"stdout": text, "stderr": "", "interrupted": false}})
}

// passes checks that a call was allowed.
func (s *stage) passes(r said) said {
	s.t.Helper()
	if r.code != 0 || strings.Contains(r.out, "permissionDecision") {
		s.t.Errorf("ended with %d: %s", r.code, r.all())
	}
	return r
}

func (s *stage) refuses(r said, words ...string) said {
	s.t.Helper()
	if r.code != 2 || r.out != "" {
		s.t.Errorf("ended with %d instead of 2: %s", r.code, r.all())
	}
	s.says(r, append(words, "REFUSED ", "\nnext: ")...)
	return r
}

func (s *stage) says(r said, words ...string) {
	s.t.Helper()
	for _, w := range words {
		if !strings.Contains(r.all(), w) {
			s.t.Errorf("does not say %q: %s", w, r.all())
		}
	}
}
