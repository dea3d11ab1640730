package cli_test

import (
	"strings"
	"testing"
)

// A person switches the checks off at a terminal, with a word that they type, and on again;
// both are in the event log. Any other answer changes nothing.
//
// shows: GP-5
func TestOffAtATerminal(t *testing.T) {
	d := newConsole(t)
	d.talking(1, []talk{{shown: `Type "off" to continue`, typed: "no"}}, "off", "30m")
	d.past("nothing changed")
	if out := d.must(0, "off", "--end"); !strings.Contains(out, "were not off") {
		t.Errorf("it is off: %s", out)
	}
	d.talking(0, []talk{{shown: `Type "off" to continue`, typed: "off"}}, "off", "30m", "--reason", "the disk is being moved")
	if out := d.must(0, "status", "--short"); !strings.Contains(out, "OFF") {
		t.Errorf("status does not show it: %s", out)
	}
	d.talking(1, nil, "off", "10m") // it is told before anything is asked
	if out := d.must(0, "off", "--end"); !strings.Contains(out, "are on again") {
		t.Errorf("it is still off: %s", out)
	}
	wantText(t, d.must(0, "audit"), "ada", ".lockkeeper/off", "(person)", "off for 30m0s: the disk is being moved")
}
