package hook_test

import (
	"fmt"
	"strings"
	"testing"
)

// A formatter that changes many files of others is one message with counts and a command.
//
// shows: GP-5
func TestManyUncovered(t *testing.T) {
	s := newStage(t)
	for i := range 38 {
		name := fmt.Sprintf("app/many/file_%02d.rb", i)
		s.write(name, "x\n")
		switch {
		case i < 12:
			s.edits("A", name, "half\n")
		case i < 20:
			s.passes(s.edit("C", name))
		}
	}
	s.passes(s.bash("B", "PreToolUse", "./format ."))
	for i := range 38 {
		s.write(fmt.Sprintf("app/many/file_%02d.rb", i), "x = 1\n")
	}
	r := s.passes(s.bash("B", "PostToolUse", "./format ."))
	s.says(r, "UNCOVERED 20 files that others hold", "12 of ", "8 of ", "They are app/many/file_", "and 17 more", "20 changes are kept: lockkeeper rescue list", "overwritten while your command ran: 38 files")
	if strings.Count(r.out, "UNCOVERED") != 2 { // for the agent and the person
		t.Error(r.out)
	}
	r = s.passes(s.bash("A", "PreToolUse", "ls"))
	s.says(r, "DISTURBED 12 files, which you hold", "12 by ", "app/many/file_00.rb", "and 9 more")
	if strings.Count(r.out, "DISTURBED") != 2 {
		t.Error(r.out)
	}
}

// A refusal suggests to defer a patch only if the gate would write the file.
func TestDeferIsSuggestedWhereItWorks(t *testing.T) {
	s := newStage(t)
	s.write("lockkeeper.yaml", "gate: {allowed_write_paths: [app]}\n")
	s.write("lib/own.rb", "x\n")
	s.edits("A", user, "by A\n")
	s.edits("A", "lib/own.rb", "by A\n")
	s.refuses(s.edit("B", user), "lockkeeper why "+user+" | lockkeeper defer "+user+" < patch")
	if r := s.refuses(s.edit("B", "lib/own.rb"), "lockkeeper why lib/own.rb"); strings.Contains(r.err, "defer") {
		t.Error(r.err)
	}
	s.write("lockkeeper.yaml", "gate: {allowed_write_paths: [lib]}\n")
	s.refuses(s.edit("B", "lib/own.rb"), "lockkeeper defer lib/own.rb < patch")
}
