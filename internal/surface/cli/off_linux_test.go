package cli_test

import (
	"strings"
	"testing"
)

// A person disables the checks at a terminal by typing a word, and enables them again. The event log records
// both. Any other answer changes nothing.
//
// shows: GP-5
func TestOffAtATerminal(t *testing.T) {
	d := newConsole(t)
	d.talking(1, []talk{{shown: "Continue? [y/N] ", typed: "no"}}, "off", "30m")
	d.past("nothing changed")
	if out := d.must(0, "off", "--end"); !strings.Contains(out, "were not off") {
		t.Errorf("it is off: %s", out)
	}
	d.talking(0, []talk{{shown: "Continue? [y/N] ", typed: "y"}}, "off", "30m", "--reason", "the disk is being moved")
	if out := d.must(0, "status", "--short"); !strings.Contains(out, "OFF") {
		t.Errorf("status does not show it: %s", out)
	}
	d.talking(1, nil, "off", "10m") // refused without a question
	if out := d.must(0, "off", "--end"); !strings.Contains(out, "are on again") {
		t.Errorf("it is still off: %s", out)
	}
	wantText(t, d.must(0, "audit"), "ada", ".lockkeeper/off", "(person)", "off for 30m0s: the disk is being moved")
}
