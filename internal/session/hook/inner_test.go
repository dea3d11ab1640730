package hook_test

import "testing"

// Agents of one window leave alone what another of them is at work on, also where an act takes
// the whole directory, or names the file only in a program.
//
// shows: GP-5 CF-15
func TestInnerAgentsAndDirectories(t *testing.T) {
	s := newRepository(t)
	inner := func(id, command string) said {
		return s.call("claude-code", map[string]any{"session_id": "s1", "agent_id": id, "hook_event_name": "PreToolUse",
			"tool_name": "Bash", "tool_use_id": "toolu_" + id, "tool_input": map[string]any{"command": command}})
	}
	s.reads("s1", user)
	s.reads("s1", post)
	s.passes(inner("a1", "sed -i s/a/b/ "+user))
	for _, command := range []string{"git stash", "git reset --hard", "git checkout .", "git restore app", "git switch -f main", "git switch -c topic", "rm -rf app/models", "mv app other",
		"find app -delete", "python3 -c \"import os; f='" + user + "'; os.remove(f)\""} {
		s.refuses(inner("a2", command), "another subagent of this session", user)
		s.refuses(s.bash("s1", "PreToolUse", command), "another subagent of this session", user)
	}
	for _, command := range []string{"sed -i s/a/b/ " + post, "rm -rf test"} {
		s.passes(inner("a2", command))
	}
	s.passes(s.call("claude-code", map[string]any{"session_id": "s1", "agent_id": "a1", "hook_event_name": "SubagentStop"}))
	s.passes(s.call("claude-code", map[string]any{"session_id": "s1", "agent_id": "a2", "hook_event_name": "SubagentStop"}))
	s.passes(s.bash("s1", "PreToolUse", "rm -rf app/models/user.rb"))
}
