package hook_test

import (
	"os"
	"strings"
	"testing"
)

// A session owns the log of a server that it runs in the background, however long the log
// grows. The session gets no message about it and can restart the server.
//
// shows: GP-5
func TestLogOfABackgroundCommand(t *testing.T) {
	s := newStage(t)
	const serve = "./serve > dev.log 2>&1 &"
	quiet := func(r said) {
		t.Helper()
		if s.passes(r); strings.Contains(r.all(), "dev.log") {
			t.Error(r.all())
		}
	}
	s.passes(s.bash("A", "PreToolUse", serve))
	s.write("dev.log", "started\n")
	quiet(s.bash("A", "PostToolUse", serve))
	s.write("dev.log", "started\none\n")
	quiet(s.bash("A", "PreToolUse", "ls"))
	s.write("dev.log", "started\none\ntwo\n")
	quiet(s.bash("A", "PostToolUse", "ls"))
	s.write("dev.log", "started\none\ntwo\nthree\n")
	quiet(s.bash("A", "PreToolUse", serve))
	s.passes(s.bash("A", "PostToolUse", serve))
	s.passes(s.claude("A", "Stop", "", nil))
	s.write("dev.log", "started\none\ntwo\nthree\nfour\n")
	quiet(s.bash("A", "PreToolUse", serve))
	s.passes(s.bash("A", "PostToolUse", serve))
	if err := os.Remove(s.at("dev.log")); err != nil {
		t.Fatal(err)
	}
	s.write("dev.log", "by a person, who saved a file of their own there\n")
	s.refuses(s.replace("A", "dev.log"), "CHANGED dev.log")
}

// Files that a session stashed and popped still count as its own work.
//
// shows: GP-5
func TestStashedAndBack(t *testing.T) {
	s := newStage(t)
	const mine = "class User # by A\nend\n"
	s.edits("A", user, mine)
	s.passes(s.bash("A", "PreToolUse", "./without"))
	s.write(user, "class User\nend\n")
	s.says(s.passes(s.bash("A", "PostToolUse", "./without")), "CHANGED "+user)
	s.refuses(s.replace("A", user), "you have not read it since")
	s.passes(s.bash("A", "PreToolUse", "./back"))
	s.write(user, mine)
	if r := s.passes(s.bash("A", "PostToolUse", "./back")); strings.Contains(r.all(), user) {
		t.Error(r.all())
	}
	s.passes(s.replace("A", user))
}
