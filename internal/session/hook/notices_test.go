package hook_test

import (
	"os"
	"strings"
	"testing"
)

// A host may not show the answer to an event, or may not read it. A notice is then repeated until the
// agent was shown it, and not again.
//
// shows: GP-5
func TestNoticesAreRepeated(t *testing.T) {
	t.Run("gemini", func(t *testing.T) {
		s := newStage(t)
		call := func(event string) said {
			return s.call("gemini", map[string]any{"session_id": "A", "hook_event_name": event, "tool_name": "run_shell_command", "tool_input": map[string]any{"command": "true"}})
		}
		replace := map[string]any{"session_id": "A", "hook_event_name": "BeforeTool", "tool_name": "replace", "tool_input": map[string]any{"file_path": s.at(user)}}
		s.passes(s.call("gemini", replace))
		s.write(user, "by A\n")
		replace["hook_event_name"] = "AfterTool"
		s.passes(s.call("gemini", replace))
		s.write(user, "by a person\n")
		if r := s.passes(call("BeforeTool")); strings.Contains(r.out, "additionalContext") {
			t.Errorf("Gemini CLI does not show this: %s", r.out)
		}
		s.says(s.passes(call("AfterTool")), "DISTURBED "+user)
		if r := s.passes(call("AfterTool")); strings.Contains(r.out, "DISTURBED") {
			t.Errorf("it is told again: %s", r.out)
		}
	})
	t.Run("an answer that nobody reads", func(t *testing.T) {
		s := newStage(t)
		s.edits("A", user, "by A\n")
		s.write(user, "by a person\n")
		call := map[string]any{"session_id": "A", "hook_event_name": "PreToolUse", "tool_name": "Edit", "tool_use_id": "2", "tool_input": map[string]any{"file_path": s.at(post)}}
		closed, err := os.OpenFile(os.DevNull, os.O_RDONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer closed.Close()
		cmd, _, _ := s.command("claude-code", call)
		if cmd.Stdout = closed; cmd.Run() == nil {
			t.Fatal("the answer was read")
		}
		call["tool_use_id"] = "3"
		s.says(s.passes(s.call("claude-code", call)), "DISTURBED "+user)
		call["tool_use_id"] = "4"
		if r := s.passes(s.call("claude-code", call)); strings.Contains(r.out, "DISTURBED") {
			t.Errorf("it is told again: %s", r.out)
		}
	})
	t.Run("the end of a turn", func(t *testing.T) {
		s := newStage(t)
		s.edits("A", user, "by A\n")
		s.write(user, "by a person\n")
		s.passes(s.claude("A", "Stop", "", nil))
		s.says(s.passes(s.claude("A", "UserPromptSubmit", "", nil)), "DISTURBED "+user)
	})
}

// Files are compared after a command of Gemini CLI that continues in the background: with each later
// command, and at the end of the turn.
func TestGeminiBackground(t *testing.T) {
	for name, test := range map[string]struct {
		input    map[string]any
		response string
	}{
		"as asked":          {map[string]any{"command": "./fix.sh", "is_background": true}, "Command moved to background (PID: 12)."},
		"left a process":    {map[string]any{"command": "./fix.sh &"}, "Output: (empty)\nBackground PIDs: 12"},
		"moved by a person": {map[string]any{"command": "./fix.sh"}, "Command moved to background (PID: 12). Output hidden."},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.edits("A", user, "by A\n")
			call := func(event string, input map[string]any, response string) said {
				return s.call("gemini", map[string]any{"session_id": "B", "hook_event_name": event, "tool_name": "run_shell_command", "tool_input": input, "tool_response": map[string]any{"llmContent": response}})
			}
			s.passes(call("BeforeTool", test.input, ""))
			s.passes(call("AfterTool", test.input, test.response))
			s.write(user, "by B\n")
			other := map[string]any{"command": "true"}
			s.passes(call("BeforeTool", other, ""))
			s.says(s.passes(call("AfterTool", other, "")), "UNCOVERED "+user)
		})
	}
}

// If a command of one subagent changes a file that another one works on, without naming it, both
// are told. The version before is kept.
//
// shows: GP-5
func TestSubagentsComputedWrite(t *testing.T) {
	s := newStage(t)
	inner := func(id, event, tool, call string, input map[string]any) said {
		return s.call("claude-code", map[string]any{"session_id": "s1", "agent_id": id, "agent_type": "general-purpose", "hook_event_name": event,
			"tool_name": tool, "tool_use_id": call, "tool_input": input})
	}
	edit := map[string]any{"file_path": s.at(user), "old_string": "a", "new_string": "b"}
	s.passes(inner("a1", "PreToolUse", "Edit", "1", edit))
	s.write(user, "by a1\n")
	s.passes(inner("a1", "PostToolUse", "Edit", "1", edit))
	command := map[string]any{"command": "./fix.sh"}
	s.passes(inner("a2", "PreToolUse", "Bash", "2", command))
	s.write(user, "by a2\n")
	s.says(s.passes(inner("a2", "PostToolUse", "Bash", "2", command)), "CHANGED "+user, "Your version is kept")
	if r := s.passes(s.claude("s1", "PostToolUse", "", map[string]any{})); strings.Contains(r.out, user) {
		t.Errorf("the main agent is told of a file of a subagent: %s", r.out)
	}
	again := inner("a1", "PreToolUse", "Edit", "3", edit)
	s.says(s.passes(again), "DISTURBED "+user, "a command of another subagent (general-purpose) ran", "is kept: lockkeeper rescue show")
	if r := s.passes(inner("a1", "PostToolUse", "Edit", "3", edit)); strings.Contains(r.out, user) {
		t.Errorf("it is told again: %s", r.out)
	}
}
