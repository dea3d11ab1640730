package process

import (
	"errors"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"lockkeeper"
)

// A process that lowered its limit is named only if the dead keeper may have started it. It is
// never killed.
//
// shows: SW-71
func TestLoweredLimit(t *testing.T) {
	const lower = "ulimit -m 1000; echo ready $$; exec sleep 1000"
	h := newHost(t)
	earlier := launch(t, nil, "sh", "-c", lower)
	old := identify(t, earlier.next("ready"))
	later(t, h, old)
	p := dead(t, h)
	p.Group, p.Keeper = p.PID, p.Start
	later(t, h, p)

	shell := launch(t, nil, "sh", "-c", "("+`sh -c "$1"`+") & wait", "sh", lower) // started by a shell without a limit
	below := identify(t, shell.next("ready"))
	t.Cleanup(func() { unix.Kill(below.PID, unix.SIGKILL) })
	kept := launch(t, nil, helperArgv("supervise", ownGrant("g-lives"), "sh", "-c", lower)...)
	work := identify(t, kept.next("ready"))
	suspect := launch(t, nil, "sh", "-c", lower)
	alone := identify(t, suspect.next("ready"))

	names := func() (pids []int) {
		var left *LeftoversError
		if err := h.EndLeftovers(t.Context(), p, ownGrant("g-gone")); err != nil && !errors.As(err, &left) {
			t.Fatal(err)
		}
		if left != nil {
			for _, l := range left.Left {
				pids = append(pids, l.PID)
			}
		}
		return pids
	}
	got := names()
	if !slices.Contains(got, alone.PID) {
		t.Errorf("named %v, want process %d", got, alone.PID)
	}
	for _, other := range []int{old.PID, below.PID, work.PID} {
		if slices.Contains(got, other) {
			at, _ := readStat(other)
			t.Errorf("named %+v, which is not of this grant; the keeper started at %d", at, p.Keeper)
		}
	}
	if _, err := Identify(alone.PID); err != nil {
		t.Errorf("it was killed: %v", err)
	}
	suspect.cmd.Process.Kill()
	wantGone(t, h, alone)
	if got := names(); slices.Contains(got, alone.PID) {
		t.Errorf("named %v after its end", got)
	}
}

// later returns when new processes have a later start time than the given one.
func later(t *testing.T, h *Host, than lockkeeper.Process) {
	t.Helper()
	for dead(t, h).Start <= than.Start {
	}
}

// Processes of a user whose processes all have a limit are not mistaken for daemons.
func TestIsLowered(t *testing.T) {
	const none, memory = unix.RLIM_INFINITY, 8 << 30
	b := uint64(limitMarkOf(100, 5000))
	for _, test := range []struct {
		soft, hard, base uint64
		want             bool
	}{
		{none, none, none, false}, {b, b, none, false}, {b, b + 1, none, false}, {1000, none, none, false},
		{1000, 1000, none, true}, {0, 0, none, true}, {1000, b, none, true}, {1000, 1000, b, true},
		{memory, memory, memory, false}, {1000, 1000, memory, true}, {b, b, memory, false},
	} {
		if got := isLowered(test.soft, test.hard, test.base); got != test.want {
			t.Errorf("isLowered(%d, %d, %d) = %v", test.soft, test.hard, test.base, got)
		}
	}
}
