package hook_test

import "testing"

// A tool of an MCP server is judged by the files that its input names, and what others hold is
// compared after it. A tool that only reads is not refused.
//
// shows: GP-5
func TestToolsOfServers(t *testing.T) {
	for agent, names := range map[string][3]string{
		"claude-code": {"mcp__files__", "PreToolUse", "PostToolUse"},
		"codex":       {"mcp__files__", "PreToolUse", "PostToolUse"},
		"gemini":      {"mcp_files_", "BeforeTool", "AfterTool"},
	} {
		t.Run(agent, func(t *testing.T) {
			s := newStage(t)
			s.passes(s.edit("A", user))
			call := func(event, tool string, input map[string]any) said {
				return s.call(agent, map[string]any{"session_id": "B", "hook_event_name": event, "tool_name": names[0] + tool, "tool_use_id": "1", "tool_input": input})
			}
			for tool, input := range map[string]map[string]any{
				"write_file": {"path": s.at(user), "content": "x"},
				"editFile":   {"filePath": user},
				"move_file":  {"source": post, "destination": user},
				"apply":      {"edits": []any{map[string]any{"uri": "file://" + s.at(user)}}},
				"frobnicate": {"paths": []any{user}},
			} {
				s.refuses(call(names[1], tool, input), user)
			}
			for tool, input := range map[string]map[string]any{
				"read_file":   {"path": s.at(user)},
				"searchFiles": {"paths": []any{user}},
				"write_note":  {"title": user, "content": user},
				"open_page":   {"uri": "https://example.org/" + user},
			} {
				s.passes(call(names[1], tool, input))
				s.passes(call(names[2], tool, input))
			}
			s.passes(call(names[1], "compute", map[string]any{"n": 1}))
			s.write(user, "computed\n")
			s.says(s.passes(call(names[2], "compute", map[string]any{"n": 1})), "UNCOVERED "+user)
		})
	}
}
