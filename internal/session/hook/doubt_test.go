package hook_test

import (
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/session"
	"lockkeeper/rescue"
)

// If a person saves a file while the holder's command runs, the change does not count as the
// holder's. The holder is told, its version is kept, and it must read the file before replacing it.
//
// shows: GP-5
func TestChangedBesideACommand(t *testing.T) {
	s := newStage(t)
	s.edits("A", user, "by A\n")
	s.passes(s.bash("A", "PreToolUse", "npm test"))
	s.write(user, "by a person\n")
	s.says(s.passes(s.bash("A", "PostToolUse", "npm test")), "CHANGED "+user+", which you hold, changed while your command ran: by the command, or by another program.",
		"Your version is kept: lockkeeper rescue show", "systemMessage")
	if r := s.refuses(s.replace("A", user), "it changed while you held it, and you have not read it since"); strings.Contains(r.all(), "DISTURBED") {
		t.Errorf("told twice: %s", r.all())
	}
	s.reads("A", user)
	s.passes(s.replace("A", user))
	if got := s.read(user); got != "by a person\n" {
		t.Errorf("it holds %q", got)
	}
}

// A command that showed a file before the file changed did not show the current content.
//
// shows: GP-5
func TestShownBeforeItChanged(t *testing.T) {
	s := newStage(t)
	cat := "cat " + user
	for _, test := range []struct {
		change func()
		seen   bool
	}{{func() { s.write(user, "by a person\n") }, false}, {func() {}, true}} {
		s.passes(s.bash("B", "PreToolUse", cat))
		shown := s.read(user)
		test.change()
		s.passes(s.printed("B", cat, shown))
		r := s.replace("B", user)
		if (r.code == 0) != test.seen {
			t.Errorf("ended with %d: %s", r.code, r.all())
		}
	}
}

// When a session ends, the effects of a command without a reported end are compared. The holder
// of the file need not be a session. The session still leaves.
//
// shows: GP-5 CF-15
func TestEndAfterAnInterruptedCommand(t *testing.T) {
	s := newStage(t)
	a := s.open()
	_, err := a.Acquire(t.Context(), lockkeeper.Request{Holder: "data", TTL: time.Hour,
		Locks: []lockkeeper.Lock{{Target: lockkeeper.Target{Path: user, Kind: lockkeeper.File}, Mode: lockkeeper.Write}}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	s.passes(s.edit("B", post))
	s.passes(s.bash("B", "PreToolUse", "./generate"))
	s.write(user, "by B\n")
	s.says(s.passes(s.claude("B", "SessionEnd", "prompt_input_exit", nil)), "UNCOVERED "+user)
	kept, err := session.Rescued(t.Context(), a)
	if err != nil || len(kept) != 2 || kept[0].Kind != rescue.Gap || kept[1].Kind != rescue.Uncommitted || kept[1].Path != user { // the new content and the previous content
		t.Errorf("%+v %v", kept, err)
	}
	grants, err := a.Locks.ActiveGrants(t.Context())
	if err != nil || len(grants) != 1 || grants[0].Holder != "data" {
		t.Errorf("%+v %v", grants, err)
	}
}
