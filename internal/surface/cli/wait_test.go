package cli

import (
	"slices"
	"strings"
	"testing"

	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

// A request for locks that waits and names no time waits for 300 seconds.
//
// shows: SW-45 PL-46
func TestWaitWithoutATime(t *testing.T) {
	io := &term.IO{}
	for line, want := range map[string]string{
		"lock acquire --write a --wait":           "lock acquire --write a --wait 5m0s",
		"lock acquire --wait --write a":           "lock acquire --wait 5m0s --write a",
		"lock acquire --wait 7s --write a":        "lock acquire --wait 7s --write a",
		"lock acquire --wait=7s --write a":        "lock acquire --wait=7s --write a",
		"lock exec --write a --wait -- sh --wait": "lock exec --write a --wait 5m0s -- sh --wait",
		"lock exec --write a -- sh --wait":        "lock exec --write a -- sh --wait",
		"run --wait":                              "run --wait",
		"claim Chapter_01 --on-conflict wait":     "claim Chapter_01 --on-conflict wait",
		"nonsense --wait":                         "nonsense --wait",
	} {
		args := strings.Fields(line)
		if got := withWait(root(&command.Program{IO: io, Out: &term.Output{}}), args); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s: got %q", line, got)
		}
	}
}
