package hook_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file that was read only in part does not count as seen.
//
// shows: GP-5
func TestPartlyRead(t *testing.T) {
	s := newStage(t)
	text := func(content string) map[string]any {
		return map[string]any{"type": "text", "file": map[string]any{"filePath": s.at(user), "content": content}}
	}
	all := s.read(user)
	for i, test := range []struct {
		name     string
		input    map[string]any
		response any
		whole    bool
	}{
		{"all of it, it is said", nil, text(all), true},
		{"all of it, it is not said", nil, nil, true},
		{"all of it, in a form that is not known", nil, "1\tclass User\n2\tend\n", true},
		{"all but its last end of line", map[string]any{"limit": 2}, text("class User\nend"), true},
		{"its first line", map[string]any{"offset": 1, "limit": 1}, text("class User"), false},
		{"its last line", map[string]any{"offset": 2}, text("end\n"), false},
		{"less than was asked for", nil, text("class User"), false},
		{"a part of a line", nil, text("a class User\nend\n"), false},
		{"a limit, and nothing is said", map[string]any{"limit": 100}, nil, false},
		{"an offset, and nothing is said", map[string]any{"offset": 1}, nil, false},
		{"it is as it was", nil, map[string]any{"type": "file_unchanged", "file": map[string]any{"filePath": s.at(user)}}, false},
		{"an image", nil, map[string]any{"type": "image", "file": map[string]any{"base64": "eA=="}}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			session := fmt.Sprint("S", i)
			input := map[string]any{"file_path": s.at(user)}
			for name, value := range test.input {
				input[name] = value
			}
			s.passes(s.call("claude-code", map[string]any{"session_id": session, "hook_event_name": "PostToolUse", "tool_name": "Read", "tool_use_id": "r",
				"tool_input": input, "tool_response": test.response}))
			r := s.replace(session, user)
			if (r.code == 0) != test.whole {
				t.Errorf("ended with %d: %s", r.code, r.all())
			}
			s.passes(s.claude(session, "Stop", "", nil))
		})
	}
	gemini := func(event, tool string, input map[string]any, shown string) said {
		return s.call("gemini", map[string]any{"session_id": "G", "hook_event_name": event, "tool_name": tool, "tool_input": input, "tool_response": map[string]any{"llmContent": shown}})
	}
	read, write := map[string]any{"file_path": s.at(post)}, map[string]any{"file_path": s.at(post), "content": "x"}
	s.passes(gemini("AfterTool", "read_file", read, "IMPORTANT: The file content has been truncated.\n--- FILE CONTENT (truncated) ---\nclass Post"))
	s.refuses(gemini("BeforeTool", "write_file", write, ""), "you have not read it")
	s.passes(gemini("AfterTool", "read_file", read, s.read(post)))
	s.passes(gemini("BeforeTool", "write_file", write, ""))
}

// A file that a command printed completely counts as seen, however it was printed, unless the
// host cut the output.
//
// shows: GP-5
func TestPrinted(t *testing.T) {
	s := newStage(t)
	s.write("indented.py", "\n  one\n\n\ttwo  \nthree")
	s.write("large.txt", strings.Repeat("line\n", 7_000))
	for i, test := range []struct {
		command string
		file    string
		seen    bool
	}{
		{"cat " + user, user, true},
		{"echo before; cat " + user + " " + post + "; echo after", post, true},
		{"cat -n " + user, user, true},
		{"nl -ba indented.py", "indented.py", true},
		{"nl indented.py", "indented.py", true},
		{"sed -n 1,200p " + user, user, true},
		{"head -n 50 indented.py", "indented.py", true},
		{"cd app && cat models/user.rb", user, true},
		{"false || cat " + user, user, true},
		{"cat " + user + " | tail -n +1", user, true},
		{"sed -n 1p " + user, user, false},
		{"head -n1 " + user, user, false},
		{"cat " + user + " > /dev/null", user, false},
		{"cat " + user + " | wc -l", user, false},
		{"true || cat " + user, user, false},
		{"cat() { :; }; cat " + user, user, false},
		{"sed s/end/fin/ " + user, user, false},
		{"cat large.txt", "large.txt", false},
		{"cat -A indented.py", "indented.py", false},
	} {
		session := fmt.Sprint("S", i)
		s.runs(session, test.command)
		if r := s.replace(session, test.file); (r.code == 0) != test.seen {
			t.Errorf("%s: ended with %d: %s", test.command, r.code, r.all())
		}
		s.passes(s.claude(session, "Stop", "", nil))
	}
	for i, test := range []struct {
		event    string
		response any
		behind   bool // the command runs in the background
		seen     bool
	}{
		{"PostToolUse", map[string]any{"stdout": s.read(user), "interrupted": false}, false, true},
		{"PostToolUse", s.read(user), false, true}, // the form that Codex sends
		{"PostToolUse", "Warning: truncated output (original token count: 7250)\n\nclass User\n…7000 tokens truncated…", false, false},
		{"PostToolUse", nil, false, false},
		{"PostToolUse", map[string]any{"stdout": s.read(user), "persistedOutputPath": "/kept.txt", "persistedOutputSize": 50_000}, false, false},
		{"PostToolUse", map[string]any{"stdout": s.read(user), "interrupted": true}, false, false},
		{"PostToolUse", map[string]any{"stdout": s.read(user), "backgroundTaskId": "b1"}, false, false},
		{"PostToolUse", map[string]any{"stdout": s.read(user)}, true, false},
		{"PostToolUseFailure", map[string]any{"stdout": s.read(user)}, false, false},
	} {
		session := fmt.Sprint("T", i)
		call := map[string]any{"session_id": session, "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "t",
			"tool_input": map[string]any{"command": "make; cat " + user, "run_in_background": test.behind}}
		s.passes(s.call("claude-code", call))
		call["hook_event_name"], call["tool_response"] = test.event, test.response
		s.passes(s.call("claude-code", call))
		if r := s.replace(session, user); (r.code == 0) != test.seen {
			t.Errorf("%+v: ended with %d: %s", test, r.code, r.all())
		}
		s.passes(s.claude(session, "Stop", "", nil))
	}
}

// A shell command that would replace a whole file that the session has not seen is refused like
// any other such write.
//
// shows: GP-5
func TestReplacedUnseen(t *testing.T) {
	s := newStage(t)
	s.write("empty", "")
	for _, command := range []string{"cp " + post + " " + user, "make > " + user, "{ date; } > " + user, "sort -o " + user + " " + post, "head -1 " + user + "; : > " + user,
		"python3 -c \"open('" + user + "', 'w').write('x')\"", "node -e \"require('fs').writeFileSync('" + user + "', 'x')\"",
		"python3 - <<'E'\nfrom pathlib import Path\nPath('" + user + "').write_text('x')\nE"} {
		s.refuses(s.bash("A", "PreToolUse", command), user, "you have not read it")
	}
	for _, command := range []string{"make >> " + user, "make | tee -a " + user, "sed -i s/a/b/ " + user, "make > new.log", "make > empty",
		"python3 -c \"s=open('" + user + "').read(); open('" + user + "', 'w').write(s.replace('a', 'b'))\""} {
		s.passes(s.bash("A", "PreToolUse", command))
		s.passes(s.bash("A", "PostToolUse", command))
	}
	s.runs("A", "cat "+user)
	s.passes(s.bash("A", "PreToolUse", "date > "+user))
	s.write(user, "the date\n")
	s.passes(s.bash("A", "PostToolUse", "date > "+user))
	s.passes(s.bash("A", "PreToolUse", "date > "+user)) // the session left that content itself
}

// The words of a command that runs outside every codebase are resolved in each directory that it
// goes to. They may name files that do not exist yet.
//
// shows: GP-5
func TestComparedByWords(t *testing.T) {
	s := newStage(t)
	outside := t.TempDir()
	s.edits("A", user, "by A\n")
	s.passes(s.edit("A", "app/new.rb")) // A has not written it yet
	for _, test := range []struct{ command, file string }{
		{"cd " + filepath.Dir(s.dir) + ` && awk 'BEGIN{f = "repo/` + user + `"; print "by B" > f}'`, user},
		{`awk 'BEGIN{f = "` + s.at("app/new.rb") + `"; print "by B" > f}'`, "app/new.rb"},
	} {
		call := func(event string) said {
			return s.call("claude-code", map[string]any{"session_id": "B", "hook_event_name": event, "tool_name": "Bash", "tool_use_id": "t", "cwd": outside,
				"tool_input": map[string]any{"command": test.command}})
		}
		s.passes(call("PreToolUse"))
		s.write(test.file, "by B\n")
		s.says(s.passes(call("PostToolUse")), "UNCOVERED "+test.file)
	}
}

// A call is compared where it began, even if its shell has moved elsewhere since. The paths that
// it named are relative to that directory.
//
// shows: GP-5
func TestComparedWhereItBegan(t *testing.T) {
	s, other := newStage(t), newStage(t)
	for name, elsewhere := range map[string]string{"in no codebase": t.TempDir(), "in another": other.dir} {
		t.Run(name, func(t *testing.T) {
			call := func(event, command, dir string) said {
				c := map[string]any{"session_id": "B", "hook_event_name": event, "cwd": dir}
				if command != "" {
					c["tool_name"], c["tool_use_id"], c["tool_input"] = "Bash", "t", map[string]any{"command": command}
					c["tool_response"] = map[string]any{"stdout": "class Post\nend"}
				}
				return s.call("claude-code", c)
			}
			turn := func(text string) {
				s.edits("A", user, text)
			}
			turn("by A\n")
			const goes = "./fix; cd $elsewhere"
			s.passes(call("PreToolUse", goes, s.dir))
			s.write(user, "by B\n")
			s.says(s.passes(call("PostToolUse", goes, elsewhere)), "UNCOVERED "+user)
			turn("by A again\n")
			s.passes(call("PreToolUse", goes, s.dir))
			s.write(user, "by B again\n")
			s.says(s.passes(call("Stop", "", elsewhere)), "In "+s.dir+": UNCOVERED "+user)
			s.passes(s.claude("A", "Stop", "", nil))
			read := "cat " + post + "; cd $elsewhere"
			s.passes(call("PreToolUse", read, s.dir))
			s.passes(call("PostToolUse", read, elsewhere))
			s.passes(s.replace("B", post))
			s.passes(call("Stop", "", elsewhere))
			s.passes(s.edit("A", post)) // B has released it
			s.passes(s.claude("A", "Stop", "", nil))
		})
	}
	s.refuses(s.claude("B", "PreToolUse", "Write", map[string]any{"file_path": other.at(post), "content": "x"}), "you have not read it")
}

// A prompt during a command whose shell then moves elsewhere does not hide the command's changes.
//
// shows: GP-5
func TestComparedWhereItBeganAfterAPrompt(t *testing.T) {
	s := newStage(t)
	s.edits("A", user, "by A\n")
	const goes = "./fix; cd $elsewhere"
	s.passes(s.bash("B", "PreToolUse", goes))
	s.passes(s.claude("B", "UserPromptSubmit", "and then", nil))
	s.write(user, "by B\n")
	s.says(s.passes(s.call("claude-code", map[string]any{"session_id": "B", "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_use_id": "toolu_Bash",
		"cwd": t.TempDir(), "tool_input": map[string]any{"command": goes}})), "UNCOVERED "+user)
}

// If a host without call ids makes two equal calls at once, the ends of both are compared.
//
// shows: GP-5
func TestEqualCallsAtOnce(t *testing.T) {
	s := newStage(t)
	s.edits("A", user, "by A\n")
	call := func(event string) said {
		return s.call("gemini", map[string]any{"session_id": "G", "hook_event_name": event, "tool_name": "run_shell_command", "tool_input": map[string]any{"command": "make"}})
	}
	s.passes(call("BeforeTool"))
	s.passes(call("BeforeTool"))
	if r := s.passes(call("AfterTool")); strings.Contains(r.out, "UNCOVERED") {
		t.Error(r.out)
	}
	s.write(user, "by G\n")
	s.says(s.passes(call("AfterTool")), "UNCOVERED "+user)
	if err := os.Remove(s.at(user)); err != nil {
		t.Fatal(err)
	}
	if r := s.passes(call("AfterTool")); strings.Contains(r.out, "UNCOVERED") {
		t.Error("a call that never began is compared")
	}
}

// A session that changed nothing in a file knows no more about it than before.
//
// shows: GP-5
func TestNothingChanged(t *testing.T) {
	s := newRepository(t)
	for _, command := range []string{"chmod +x " + user, "touch " + user, "sed -i s/nothing/else/ " + user} {
		s.runs("A", command)
		s.refuses(s.replace("A", user), "you have not read it")
	}
	s.passes(s.edit("A", user))
	s.passes(s.edited("A", user)) // the edit failed
	s.refuses(s.replace("A", user), "you have not read it")
	s.runs("B", "chmod +x notes/plan.txt")
	s.refuses(s.bash("B", "PreToolUse", "rm notes/plan.txt"), "that you neither created nor read")
	s.reads("A", user)
	s.runs("A", "touch "+user)
	s.passes(s.replace("A", user))
}

// A session that changed a file without reading it does not know the rest, so it cannot replace
// the whole file. It may undo its own change.
func TestChangedInPart(t *testing.T) {
	s := newStage(t)
	const user = "app/models/user.rb"
	s.edits("A", user, "class User # A\nend\n")
	s.refuses(s.replace("A", user), "you changed it, and have read only a part of it in this session")
	s.refuses(s.bash("A", "PreToolUse", "echo x > "+user), "only a part")
	s.edits("A", user, "class User # A again\nend\n")
	s.refuses(s.replace("A", user), "only a part")
	s.passes(s.bash("A", "PreToolUse", "rm "+user))
	s.passes(s.call("claude-code", map[string]any{"session_id": "A", "hook_event_name": "PostToolUse", "tool_name": "Read", "tool_use_id": "toolu_r",
		"tool_input":    map[string]any{"file_path": s.at(user)},
		"tool_response": map[string]any{"type": "text", "file": map[string]any{"filePath": s.at(user), "content": s.read(user), "numLines": 2, "startLine": 1, "totalLines": 2}}}))
	s.passes(s.replace("A", user))
	s.write(user, "class User # whole\nend\n")
	s.passes(s.claude("A", "PostToolUse", "Write", map[string]any{"file_path": s.at(user)}))
	s.passes(s.replace("A", user))
}
