package hook_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Reading a part of a file is not having seen it.
//
// shows: GP-5
func TestPartlyRead(t *testing.T) {
	s := newStage(t)
	lines := func(start, shown, total int) map[string]any {
		return map[string]any{"type": "text", "file": map[string]any{"filePath": s.at(user), "content": "…", "startLine": start, "numLines": shown, "totalLines": total}}
	}
	for i, test := range []struct {
		name     string
		input    map[string]any
		response any
		whole    bool
	}{
		{"all of it, it is said", nil, lines(1, 2, 2), true},
		{"all of it, it is not said", nil, nil, true},
		{"all of it, in a form that is not known", nil, "class User", true},
		{"a limit beyond its end", map[string]any{"limit": 100}, lines(1, 2, 2), true},
		{"an offset of its first line", map[string]any{"offset": 1}, lines(1, 2, 2), true},
		{"its first line", map[string]any{"offset": 1, "limit": 1}, lines(1, 1, 2), false},
		{"its last line", map[string]any{"offset": 2}, lines(2, 1, 2), false},
		{"more than is shown at once", nil, lines(1, 2000, 5000), false},
		{"a limit, and nothing is said", map[string]any{"limit": 100}, nil, false},
		{"an offset, and nothing is said", map[string]any{"offset": 1}, nil, false},
		{"it is as it was", nil, map[string]any{"type": "file_unchanged", "file": map[string]any{"filePath": s.at(user)}}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			session := fmt.Sprint("S", i)
			input := map[string]any{"file_path": s.at(user)}
			for name, value := range test.input {
				input[name] = value
			}
			s.passes(s.call("claude-code", map[string]any{"session_id": session, "hook_event_name": "PostToolUse", "tool_name": "Read", "tool_use_id": "r",
				"tool_input": input, "tool_response": test.response}))
			r := s.claude(session, "PreToolUse", "Write", map[string]any{"file_path": s.at(user), "content": "x"})
			if (r.code == 0) != test.whole {
				t.Errorf("ended with %d: %s", r.code, r.all())
			}
			s.passes(s.claude(session, "Stop", "", nil))
		})
	}
	gemini := func(event, tool string, input map[string]any) said {
		return s.call("gemini", map[string]any{"session_id": "G", "hook_event_name": event, "tool_name": tool, "tool_input": input})
	}
	write := map[string]any{"file_path": s.at(post), "content": "x"}
	s.passes(gemini("AfterTool", "read_file", map[string]any{"file_path": s.at(post), "start_line": 1, "end_line": 1}))
	s.refuses(gemini("BeforeTool", "write_file", write), "you have not read it")
	s.passes(gemini("AfterTool", "read_file", map[string]any{"file_path": s.at(post)}))
	s.passes(gemini("BeforeTool", "write_file", write))
}

// A file that a command prints is seen where all that it printed is shown.
//
// shows: GP-5
func TestPrintedAndCut(t *testing.T) {
	s := newStage(t)
	for i, test := range []struct {
		event    string
		response map[string]any
		behind   bool // it is run in the background
		seen     bool
	}{
		{"PostToolUse", map[string]any{"stdout": "class User", "interrupted": false}, false, true},
		{"PostToolUse", nil, false, true},
		{"PostToolUse", map[string]any{"stdout": "class", "persistedOutputPath": "/kept.txt", "persistedOutputSize": 50_000}, false, false},
		{"PostToolUse", map[string]any{"stdout": "class", "interrupted": true}, false, false},
		{"PostToolUse", map[string]any{"stdout": "", "backgroundTaskId": "b1"}, false, false},
		{"PostToolUse", nil, true, false},
		{"PostToolUseFailure", nil, false, false},
	} {
		session := fmt.Sprint("S", i)
		call := map[string]any{"session_id": session, "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "t", "tool_input": map[string]any{"command": "make; cat " + user, "run_in_background": test.behind}}
		s.passes(s.call("claude-code", call))
		call["hook_event_name"], call["tool_response"] = test.event, test.response
		s.passes(s.call("claude-code", call))
		if r := s.claude(session, "PreToolUse", "Write", map[string]any{"file_path": s.at(user), "content": "x"}); (r.code == 0) != test.seen {
			t.Errorf("%+v: ended with %d: %s", test, r.code, r.all())
		}
		s.passes(s.claude(session, "Stop", "", nil))
	}
}

// What a shell would put in the place of content that the session has not seen is refused
// like any other write of a whole file.
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
	s.passes(s.bash("A", "PreToolUse", "cat "+user))
	s.passes(s.bash("A", "PostToolUse", "cat "+user))
	s.passes(s.bash("A", "PreToolUse", "date > "+user))
	s.write(user, "the date\n")
	s.passes(s.bash("A", "PostToolUse", "date > "+user))
	s.passes(s.bash("A", "PreToolUse", "date > "+user)) // it left that itself
}

// Words of a command that is run outside of any codebase are looked for wherever it goes,
// and need not name what is there already.
//
// shows: GP-5
func TestComparedByWords(t *testing.T) {
	s := newStage(t)
	outside := t.TempDir()
	s.passes(s.edit("A", user))
	s.write(user, "by A\n")
	s.passes(s.edited("A", user))
	s.passes(s.edit("A", "app/new.rb")) // which A has not written yet
	for _, test := range []struct{ command, file string }{
		{"cd " + filepath.Dir(s.dir) + ` && awk 'BEGIN{print "by B" > "repo/` + user + `"}'`, user},
		{`awk 'BEGIN{print "by B" > "` + s.at("app/new.rb") + `"}'`, "app/new.rb"},
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

// A call is compared where it began, also when its shell has gone elsewhere since; and what
// it named was named from there.
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
				}
				return s.call("claude-code", c)
			}
			turn := func(text string) {
				s.passes(s.edit("A", user))
				s.write(user, text)
				s.passes(s.edited("A", user))
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
			s.passes(s.claude("B", "PreToolUse", "Write", map[string]any{"file_path": s.at(post), "content": "x"}))
			s.passes(call("Stop", "", elsewhere))
			s.passes(s.edit("A", post)) // which B has given back
			s.passes(s.claude("A", "Stop", "", nil))
		})
	}
	s.refuses(s.claude("B", "PreToolUse", "Write", map[string]any{"file_path": other.at(post), "content": "x"}), "you have not read it")
}

// A prompt in the middle of a command, whose shell then goes elsewhere, hides nothing.
//
// shows: GP-5
func TestComparedWhereItBeganAfterAPrompt(t *testing.T) {
	s := newStage(t)
	s.passes(s.edit("A", user))
	s.write(user, "by A\n")
	s.passes(s.edited("A", user))
	const goes = "./fix; cd $elsewhere"
	s.passes(s.bash("B", "PreToolUse", goes))
	s.passes(s.claude("B", "UserPromptSubmit", "and then", nil))
	s.write(user, "by B\n")
	s.says(s.passes(s.call("claude-code", map[string]any{"session_id": "B", "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_use_id": "toolu_Bash",
		"cwd": t.TempDir(), "tool_input": map[string]any{"command": goes}})), "UNCOVERED "+user)
}

// Of two equal calls at once, of a host that gives them no ids, both ends are compared.
//
// shows: GP-5
func TestEqualCallsAtOnce(t *testing.T) {
	s := newStage(t)
	s.passes(s.edit("A", user))
	s.write(user, "by A\n")
	s.passes(s.edited("A", user))
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
