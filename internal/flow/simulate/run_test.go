package simulate_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"lockkeeper/internal/flow/simulate"
	"lockkeeper/sched"
)

// The schedules of small plans equal those worked out by hand.
//
// shows: SW-27 SW-29 SW-31 PL-37
func TestByHand(t *testing.T) {
	for _, c := range []struct {
		name, plan string
		slots      int
		starts     string
		finish     time.Duration
		bound      time.Duration
		by         string
	}{
		{"chain", "a 1m\n b 2m ^a\n c 3m ^b", 2, "a 0s, b 1m0s, c 3m0s", 6 * time.Minute, 6 * time.Minute, "chain"},
		{"slots", "a 1m\n b 1m\n c 1m\n d 1m", 2, "a 0s, b 0s, c 1m0s, d 1m0s", 2 * time.Minute, 2 * time.Minute, "work"},
		{"one file", "a 2m >f\n b 3m >f\n c 4m >f", 3, "a 0s, b 2m0s, c 5m0s", 9 * time.Minute, 9 * time.Minute, "file"},
		{"readers share", "a 2m <f\n b 3m <f\n c 1m <f", 3, "b 0s, a 0s, c 0s", 3 * time.Minute, 3 * time.Minute, "chain"},
		{"a writer waits for all readers", "a 2m <f\n b 3m <f\n w 1m >f", 3, "b 0s, a 0s, w 3m0s", 4 * time.Minute, 4 * time.Minute, "file"},
		{"a directory is read", "a 2m <app/views/\n w 1m >app/views/x.erb\n v 1m >app/views_old/x.erb", 3, "a 0s, v 0s, w 2m0s", 3 * time.Minute, 3 * time.Minute, "file"},
		{"what is blocked is passed over", "a 4m >f\n b 1m >f\n c 1m >g\n d 1m >h", 2, "a 0s, c 0s, d 1m0s, b 4m0s", 5 * time.Minute, 5 * time.Minute, "file"},
		{"work near its end first", "a 1m\n b 1m apply\n c 1m verify", 1, "c 0s, b 1m0s, a 2m0s", 3 * time.Minute, 3 * time.Minute, "work"},
		{"projects take turns", "a 1m @p\n b 1m @p\n c 1m @q", 1, "a 0s, c 1m0s, b 2m0s", 3 * time.Minute, 3 * time.Minute, "work"},
		{"no barrier between phases", "a 1m\n b 5m\n c 1m apply ^a", 2, "b 0s, a 0s, c 1m0s", 5 * time.Minute, 5 * time.Minute, "chain"},
		// The items v and w write f and can start after a minute at the earliest. Two minutes of work
		// follow each of them.
		{"before and after a file", "a 1m\n b 1m\n v 3m >f ^a\n w 3m >f ^b\n x 2m ^v\n y 2m ^w", 3, "a 0s, b 0s, v 1m0s, w 4m0s, x 4m0s, y 7m0s", 9 * time.Minute, 9 * time.Minute, "file"},
		{"ends at one time free together", "a 1m >f\n b 1m >g\n c 1m >f >g\n d 1m", 2, "a 0s, b 0s, c 1m0s, d 1m0s", 2 * time.Minute, 2 * time.Minute, "work"},
	} {
		rep := run(t, plan(t, c.plan), c.slots)
		if got := starts(rep); got != c.starts {
			t.Errorf("%s: starts %s, want %s", c.name, got, c.starts)
		}
		if got := time.Duration(rep.Prediction.Finish); got != c.finish {
			t.Errorf("%s: done after %s, want %s", c.name, got, c.finish)
		}
		if got := time.Duration(rep.Bound.Finish); got != c.bound || rep.Bound.By != c.by {
			t.Errorf("%s: bound %s by %s, want %s by %s", c.name, got, rep.Bound.By, c.bound, c.by)
		}
	}
}

// The blocked time of items is counted by file, from the time when they were skipped.
func TestBlockedTime(t *testing.T) {
	rep := run(t, plan(t, `
		a 2m >f
		b 3m >f
		c 4m >f
		d 1m >g
		e 1m <g`), 9)
	want := []simulate.FileWait{
		{Path: "f", Tier: simulate.TierModule, Blocked: simulate.Span(7 * time.Minute), Items: 2},
		{Path: "g", Tier: simulate.TierModule, Blocked: simulate.Span(time.Minute), Items: 1},
	}
	if len(rep.Files) != 2 || rep.Files[0] != want[0] || rep.Files[1] != want[1] {
		t.Errorf("got %v, want %v", rep.Files, want)
	}
	if got, want := rep.Prediction.Use, 100*11.0/(9*9); got < want-0.01 || got > want+0.01 {
		t.Errorf("%.2f %% of the slots are in use, want %.2f", got, want)
	}
	// No item waits for a file while no slot is free.
	if rep := run(t, plan(t, "a 2m >f\n b 2m\n c 1m >f"), 1); len(rep.Files) > 0 {
		t.Errorf("with one slot nothing is ever blocked by a file: %v", rep.Files)
	}
}

// The scheduler escalates a writer after readers have blocked it for ten minutes, by the
// simulated clock. Here it waits from 1m to 11m. The reader that starts at 12m overtakes it, so it
// reserves the file when the reader before that ends, and starts when the last one ends.
//
// shows: SW-32
func TestEscalates(t *testing.T) {
	text := "gate 1m verify\n w 1m apply >f ^gate\n" + strings.Repeat("r 4m <f\n", 10)
	p := plan(t, text)
	for i := range p.Items[2:] {
		p.Items[2+i].Name += string(rune('0' + i))
	}
	rep := run(t, p, 2)
	if got := starts(rep); !strings.Contains(got, "w 16m0s, r7 17m0s") {
		t.Errorf("the writer starts late: %s", got)
	}
}

// The report lists an item that would fail to get its locks, and the items that wait for it. The
// figures exclude them.
func TestGivesUp(t *testing.T) {
	text := "long 30m >f\n late 1m >f\n later 1m ^late\n beside 1m"
	strict := sched.Options{LockTimeout: time.Minute, MaxLockRetries: 2}
	rep, err := simulate.Run(t.Context(), plan(t, text), simulate.Options{Slots: 2, Scheduler: strict})
	if err != nil {
		t.Fatal(err)
	}
	if len(rep.Left) != 2 || rep.Left[0].Name != "late" || rep.Left[1].Name != "later" {
		t.Fatalf("left %v", rep.Left)
	}
	if l := rep.Left[0]; len(l.Paths) != 1 || l.Paths[0] != "f" || l.Waited < simulate.Span(3*time.Minute) {
		t.Errorf("it does not say why: %v", l)
	}
	if rep.Items != 2 || time.Duration(rep.Prediction.Finish) != 30*time.Minute || rep.Prediction.Above != 0 {
		t.Errorf("%d items, %v", rep.Items, rep.Prediction)
	}
	if rep := run(t, plan(t, text), 2); len(rep.Left) > 0 {
		t.Errorf("half an hour is not too long by default: %v", rep.Left)
	}
}

// A plan always has the same prediction.
func TestDeterminism(t *testing.T) {
	const seed = 7
	t.Logf("seed %d", seed)
	p := randomPlan(rand.New(rand.NewPCG(seed, seed)), 80)
	var first string
	for range 5 {
		text, err := json.Marshal(run(t, p, 6))
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = string(text)
		}
		if string(text) != first {
			t.Fatal("two simulations of one plan differ")
		}
	}
}
