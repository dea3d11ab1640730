package hook_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"lockkeeper"
)

const minute = time.Minute

var personActor = lockkeeper.Actor{Name: "ann on pts/1", Kind: lockkeeper.ActorPerson}

// Codex edits with patches, and is refused in the same way.
func TestCodex(t *testing.T) {
	s := newStage(t)
	call := func(session, event, tool, command string) said {
		return s.call("codex", map[string]any{"session_id": session, "turn_id": "1", "hook_event_name": event, "model": "m", "permission_mode": "default",
			"tool_name": tool, "tool_use_id": "call_1", "tool_input": map[string]any{"command": command}})
	}
	patch := "*** Begin Patch\n*** Update File: " + user + "\n@@\n-class User\n+class User # x\n*** Add File: app/models/new.rb\n+x\n*** End Patch\n"
	s.passes(call("A", "PreToolUse", "apply_patch", patch))
	s.write(user, "class User # x\nend\n")
	s.passes(call("A", "PostToolUse", "apply_patch", patch))
	s.refuses(call("B", "PreToolUse", "apply_patch", patch), user, "app/models/new.rb")
	s.refuses(call("B", "PreToolUse", "Bash", "sed -i s/a/b/ "+user))
	s.refuses(call("B", "PreToolUse", "apply_patch", "*** Begin Patch\n*** Add File: "+post+"\n+x\n*** End Patch\n"), "you have not read it")
	deletes := "*** Begin Patch\n*** Delete File: " + post + "\n*** End Patch\n"
	s.refuses(call("B", "PreToolUse", "apply_patch", deletes), post, "that you neither created nor read")
	s.refuses(call("B", "PreToolUse", "Bash", "apply_patch <<'E'\n"+deletes+"E"), post, "that you neither created nor read")
	s.refuses(call("B", "PreToolUse", "apply_patch", "what is this"), "it names no file")
	s.refuses(call("B", "PreToolUse", "apply_patch", "*** Begin Patch\n*** Add File: q.txt\n+x\n  *** Update File: "+user+"\n@@\n-a\n+b\n*** End Patch\n"), user)
	s.passes(call("A", "Stop", "", ""))
	s.passes(call("B", "PreToolUse", "apply_patch", patch))
}

// Codex keeps shells open and does not report what it types into them. Its next command still
// compares the files that others hold.
func TestCodexShellKeptOpen(t *testing.T) {
	s := newStage(t)
	call := func(session, event, tool, id, command string) said {
		return s.call("codex", map[string]any{"session_id": session, "hook_event_name": event, "tool_name": tool, "tool_use_id": id, "tool_input": map[string]any{"command": command}})
	}
	patch := "*** Begin Patch\n*** Update File: " + user + "\n@@\n-class User\n+class User # x\n*** End Patch\n"
	s.passes(call("A", "PreToolUse", "apply_patch", "1", patch))
	s.write(user, "class User # x\nend\n")
	s.passes(call("A", "PostToolUse", "apply_patch", "1", patch))
	s.passes(call("B", "PreToolUse", "Bash", "2", "sh"))
	s.write(user, "typed\n")
	s.passes(call("B", "PreToolUse", "Bash", "3", "true"))
	s.says(s.passes(call("B", "PostToolUse", "Bash", "3", "true")), "UNCOVERED "+user, "It may not have been you")
}

// Gemini CLI uses its own names for everything and accepts only JSON.
func TestGemini(t *testing.T) {
	s := newStage(t)
	call := func(session, event, tool string, input map[string]any) said {
		return s.call("gemini", map[string]any{"session_id": session, "hook_event_name": event, "timestamp": "2026-01-01T00:00:00Z", "tool_name": tool, "tool_input": input})
	}
	replace := map[string]any{"file_path": s.at(user), "old_string": "a", "new_string": "b"}
	if r := s.passes(call("A", "BeforeTool", "replace", replace)); r.out != "{}\n" {
		t.Errorf("%q", r.out)
	}
	s.write(user, "by A\n")
	s.passes(call("A", "AfterTool", "replace", replace))
	s.refuses(call("B", "BeforeTool", "replace", replace))
	s.refuses(call("B", "BeforeTool", "write_file", map[string]any{"file_path": s.at(post), "content": "x"}), "you have not read it")
	s.passes(call("B", "AfterTool", "read_file", map[string]any{"file_path": s.at(post)}))
	s.passes(call("B", "BeforeTool", "write_file", map[string]any{"file_path": s.at(post), "content": "x"}))
	s.refuses(call("B", "BeforeTool", "run_shell_command", map[string]any{"command": "echo x >> user.rb", "dir_path": "app/models"}))
	s.passes(call("A", "AfterAgent", "", nil))
	s.says(s.passes(call("B", "BeforeAgent", "", nil)), "FREE "+user)
	s.passes(call("B", "SessionEnd", "", nil))
}

// The plugin in opencode calls with the names and inputs of its tools. Names of MCP tools have no
// prefix that all of them share.
func TestOpencode(t *testing.T) {
	s := newStage(t)
	type input = map[string]any
	call := func(session, event, tool string, in input, output string) said {
		return s.call("opencode", map[string]any{"session_id": session, "hook_event_name": event, "tool_name": tool, "tool_use_id": "call_1", "tool_input": in,
			"tool_response": map[string]any{"output": output, "truncated": false}})
	}
	s.passes(call("A", "PreToolUse", "edit", input{"filePath": s.at(user), "oldString": "a", "newString": "b"}, ""))
	s.write(user, "by A\n")
	s.passes(call("A", "PostToolUse", "edit", input{"filePath": s.at(user)}, "Edit applied successfully."))
	for tool, in := range map[string]input{
		"write":            {"filePath": s.at(user), "content": "x"},
		"edit":             {"filePath": s.at(user)},
		"bash":             {"command": "echo x >> user.rb", "workdir": s.at("app/models")},
		"apply_patch":      {"patchText": "*** Begin Patch\n*** Update File: " + user + "\n@@\n-a\n+b\n*** End Patch\n"},
		"files_write_file": {"path": user},
	} {
		s.refuses(call("B", "PreToolUse", tool, in, ""), user)
	}
	s.refuses(call("B", "PreToolUse", "write", input{"content": "x"}, ""), "it names no file")
	s.refuses(call("B", "PreToolUse", "bash", input{}, ""), "it has no command")
	s.refuses(call("B", "PreToolUse", "write", input{"filePath": s.at(post), "content": "x"}, ""), "you have not read it")
	s.passes(call("B", "PreToolUse", "glob", input{"pattern": s.at(user)}, ""))
	s.write(post, "1: one\ntwo\n")
	s.passes(call("B", "PostToolUse", "read", input{"filePath": s.at(post)}, "<content>\n1: 1: one\n2: tw\n</content>"))
	s.refuses(call("B", "PreToolUse", "write", input{"filePath": s.at(post), "content": "x"}, ""), "you have not read it")
	s.passes(call("B", "PostToolUse", "read", input{"filePath": s.at(post)}, "<content>\n1: 1: one\n2: two\n\n(End of file)\n</content>"))
	s.passes(call("B", "PreToolUse", "write", input{"filePath": s.at(post), "content": "x"}, ""))
	s.passes(call("A", "Stop", "", nil, ""))
	s.says(s.passes(call("B", "UserPromptSubmit", "", nil, "")), "FREE "+user)
}

// A call that is ambiguous or has an unknown command is refused.
func TestUnclearCalls(t *testing.T) {
	s := newStage(t)
	s.passes(s.edit("A", user))
	raw := func(agent, text string) said {
		cmd, out, errs := s.command(agent, map[string]any{})
		cmd.Stdin = strings.NewReader(strings.NewReplacer("CWD", s.dir, "HELD", s.at(user), "FREE", s.at(post)).Replace(text))
		if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return heard(cmd.ProcessState.ExitCode(), out.String(), errs.String())
	}
	const begin = `{"session_id":"B","hook_event_name":"PreToolUse","cwd":"CWD",`
	for _, text := range []string{
		begin + `"tool_name":"Edit","tool_input":{"file_path":"HELD","File_Path":"FREE"}}`,
		begin + `"tool_name":"Edit","tool_input":{"file_path":"HELD","file_path":"FREE"}}`,
		begin + `"tool_name":"Edit","tool_input":{"file_path":"HELD","\u017file_path":"x","file\u005fpath":"FREE"}}`,
		begin + `"tool_name":"Edit","Tool_Name":"Glob","tool_input":{"file_path":"HELD"}}`,
		begin + `"Hook_Event_Name":"Notification","tool_name":"Edit","tool_input":{"file_path":"HELD"}}`,
		begin + `"tool_name":"Bash","tool_input":{}}`,
		begin + `"tool_name":"Bash"}`,
		begin + `"tool_name":"Bash","tool_input":{"command":null}}`,
		begin + `"tool_name":"Bash","tool_input":{"cmd":"echo hi > HELD"}}`,
		begin + `"tool_name":"Bash","tool_input":{"command":"true","cmd":"echo hi > HELD"}}`,
	} {
		s.refuses(raw("claude-code", text))
	}
	s.refuses(raw("codex", begin+`"tool_name":"exec_command","tool_input":{"cmd":"echo hi > HELD"}}`))
	s.refuses(raw("codex", begin+`"tool_name":"shell","tool_input":{"command":["python3","-c","open('HELD','w')"]}}`))
	s.passes(raw("codex", begin+`"tool_name":"mcp__other__run","tool_input":{"command":{"a":1,"A":2}}}`))
	const gemini = `{"session_id":"B","hook_event_name":"BeforeTool","cwd":"CWD",`
	s.refuses(raw("gemini", gemini+`"tool_name":"replace","tool_input":{"file_path":"HELD","FILE_PATH":"FREE"}}`))
	s.refuses(raw("gemini", gemini+`"tool_name":"run_shell_command","tool_input":{}}`))
}

// Each host is told of a refusal in its own form, with the reason alone. A host that does not read
// it is told by the exit code.
func TestDenial(t *testing.T) {
	s := newStage(t)
	s.edits("A", user, "by A\n")
	for host, event := range map[string]string{"claude-code": "PreToolUse", "codex": "PreToolUse", "gemini": "BeforeTool", "opencode": "PreToolUse"} {
		tool, input := "Bash", map[string]any{"command": "echo x >> " + user}
		switch host {
		case "gemini":
			tool = "run_shell_command"
		case "opencode":
			tool = "bash"
		}
		call := map[string]any{"session_id": "B" + host, "hook_event_name": event, "tool_name": tool, "tool_use_id": "t", "tool_input": input}
		cmd, out, errs := s.command(host, call)
		if err := cmd.Run(); err != nil || errs.Len() > 0 {
			t.Fatalf("%s: %v %s", host, err, errs)
		}
		var answer map[string]any
		if err := json.Unmarshal(out.Bytes(), &answer); err != nil || len(answer) > 2 {
			t.Fatalf("%s: %v %s", host, err, out)
		}
		reason, decision := answer["reason"], answer["decision"]
		if specific, is := answer["hookSpecificOutput"].(map[string]any); is && len(specific) == 3 && specific["hookEventName"] == event {
			reason, decision = specific["permissionDecisionReason"], specific["permissionDecision"]
		}
		if text, _ := reason.(string); decision != "deny" || !strings.HasPrefix(text, "REFUSED "+user+": held by ") {
			t.Errorf("%s: %s", host, out)
		}

		closed, err := os.OpenFile(os.DevNull, os.O_RDONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		cmd, _, errs = s.command(host, call)
		cmd.Stdout = closed
		if err := cmd.Run(); cmd.ProcessState.ExitCode() != 2 || !strings.HasPrefix(errs.String(), "REFUSED "+user) {
			t.Errorf("%s: %v %s", host, err, errs)
		}
		closed.Close()
	}
}
