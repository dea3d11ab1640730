package hook_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A session that holds files is told of a running agent whose hooks have not reported, once.
func TestAgentWithoutHooks(t *testing.T) {
	s := newStage(t)
	s.passes(s.edit("A", user))
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "claude")
	if err := os.WriteFile(program, content, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "600")
	cmd.Dir, cmd.Env = filepath.Join(s.dir, "app"), append(os.Environ(), "CLAUDE_CODE_SIMPLE=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Error("it ended by itself")
		}
	}()
	edited := func() said {
		return s.call("claude-code", map[string]any{"session_id": "A", "hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_use_id": "1", "tool_input": map[string]any{"file_path": s.at(user)}})
	}
	s.says(s.passes(edited()), "UNCHECKED claude, process", "started with CLAUDE_CODE_SIMPLE")
	if again := s.passes(edited()); strings.Contains(again.out, "UNCHECKED") {
		t.Errorf("it is told twice: %s", again.out)
	}
}
