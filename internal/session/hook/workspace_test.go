package hook_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// In the workspace of a run, whose tree may have our hooks, writes are not checked: the run lands
// them through the gate. A file of the codebase itself, which the sandbox hides, is refused without
// the advice to make new locks.
func TestWorkspaceOfARun(t *testing.T) {
	s := newStage(t)
	s.passes(s.edit("A", user))
	if err := os.Rename(s.at(".lockkeeper"), filepath.Join(t.TempDir(), "hidden")); err != nil {
		t.Fatal(err)
	}
	s.refuses(s.edit("A", user), "its locks were removed", "init --new-world")
	t.Setenv("LOCKKEEPER_WORKSPACE", s.at("app"))
	edit := func(name string) said {
		return s.call("claude-code", map[string]any{"session_id": "A", "hook_event_name": "PreToolUse", "tool_name": "Edit", "tool_use_id": "t", "cwd": s.at("app"),
			"tool_input": map[string]any{"file_path": s.at(name)}})
	}
	s.passes(edit(user))
	r := s.refuses(edit("test/models/user_test.rb"), "it works on a copy in "+s.at("app"), "name files below "+s.at("app"))
	if strings.Contains(r.err, "new-world") {
		t.Error(r.err)
	}
}
