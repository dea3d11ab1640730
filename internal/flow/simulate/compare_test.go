package simulate_test

import (
	"testing"
	"time"

	"lockkeeper/internal/flow/simulate"
)

// If the first item in the queue is blocked, a scheduler without overtaking leaves slots empty: b
// waits for a, and so do the items after it.
//
// shows: SW-27
func TestHeadOfLineBlocking(t *testing.T) {
	rep := run(t, plan(t, `
		a 10m >f
		b 1m >f
		c 5m
		d 5m`), 2)
	if got, want := time.Duration(rep.Prediction.Finish), 11*time.Minute; got != want {
		t.Errorf("done after %s, want %s", got, want)
	}
	// a runs until 10m, then b and c, then d after b: 10m + 1m + 5m.
	if got, want := other(t, rep, simulate.InOrder), 16*time.Minute; got != want {
		t.Errorf("in order: done after %s, want %s", got, want)
	}
	if got, want := other(t, rep, simulate.Random), 11*time.Minute; got != want {
		t.Errorf("the best of the random orders: done after %s, want %s", got, want)
	}
}

// A loop that sleeps half a second between two walks loses up to that time at each start: a ends
// at 1.1s and b begins at 1.5s; b ends at 2.6s and c begins at 3s.
//
// shows: SW-59
func TestPolling(t *testing.T) {
	rep := run(t, plan(t, `
		a 1100ms >f
		b 1100ms >f
		c 1100ms >f`), 2)
	if got, want := time.Duration(rep.Prediction.Finish), 3300*time.Millisecond; got != want {
		t.Errorf("done after %s, want %s", got, want)
	}
	if got, want := other(t, rep, simulate.Polling), 4100*time.Millisecond; got != want {
		t.Errorf("polling: done after %s, want %s", got, want)
	}
	// The loop walks in priority order and skips blocked items: c, then a, whose file is locked,
	// then b. It starts a at 4.5s.
	rep = run(t, plan(t, `
		a 1s >f
		b 3s >g
		c 4200ms apply >f`), 2)
	if got, want := other(t, rep, simulate.Polling), 5500*time.Millisecond; got != want {
		t.Errorf("polling: done after %s, want %s", got, want)
	}
}

// In both models an item joins the queue when its predecessors are complete.
//
// shows: SW-28
func TestModelsKnowDependencies(t *testing.T) {
	rep := run(t, plan(t, `
		a 2m
		b 1m ^a
		c 2m`), 1)
	for _, scheduler := range []string{simulate.InOrder, simulate.Polling} {
		if got, want := other(t, rep, scheduler), 5*time.Minute; got != want {
			t.Errorf("%s: done after %s, want %s", scheduler, got, want)
		}
	}
}

// A file is in the tier of its users: one controller, several of a project, several
// projects. An item that reads a directory also uses the files in it.
//
// shows: PL-33 PL-34
func TestTiers(t *testing.T) {
	for _, c := range []struct {
		plan string
		want simulate.Tier
	}{
		{"posts 1m @blog =controller >f\n posts/index 1m @blog =screen >f\n posts/1 1m @blog =batch >f", simulate.TierController},
		{"posts 1m @blog =controller >f\n tags/index 1m @blog =screen >f", simulate.TierModule},
		{"posts 1m @blog =controller >f\n posts 1m @shop =controller >f", simulate.TierApp},
		{"posts 1m @blog >dir/f\n tags 1m @blog <dir/", simulate.TierModule},
		{"a/index 1m @blog >f\n a/show 1m @blog >f", simulate.TierModule}, // no unit: each item is its own controller
	} {
		p := plan(t, c.plan)
		if p.Items[1].Name == p.Items[0].Name {
			p.Items[1].Name = "shop posts"
		}
		rep := run(t, p, 9)
		if len(rep.Files) != 1 || rep.Files[0].Tier != c.want {
			t.Errorf("%s:\n%v, want tier %s", c.plan, rep.Files, c.want)
		}
		for _, tier := range rep.Tiers {
			if (tier.Blocked > 0) != (tier.Tier == c.want) {
				t.Errorf("%s:\n%v", c.plan, rep.Tiers)
			}
		}
	}
}

// If another controller uses a file, the file moves to a higher tier, and agents contend for it.
//
// shows: PL-34 PL-35
func TestPromotionWidensContention(t *testing.T) {
	narrow := "posts 5m @blog =controller >app/models/post.rb\n tags 5m @blog =controller >app/models/tag.rb"
	if rep := run(t, plan(t, narrow), 2); len(rep.Files) != 0 || rep.Tiers[2].Paths != 2 {
		t.Errorf("%v %v", rep.Files, rep.Tiers)
	}
	rep := run(t, plan(t, narrow+" >app/models/post.rb"), 2)
	if len(rep.Files) != 1 || rep.Files[0].Tier != simulate.TierModule || rep.Files[0].Blocked != simulate.Span(5*time.Minute) {
		t.Errorf("%v", rep.Files)
	}
}

// Shared files that are only read cause no waits. A written file causes waits only while it is
// written.
//
// shows: PL-37
func TestReadsCostOnlyDuringWrites(t *testing.T) {
	readers := "a 3m @p <layout\n b 3m @q <layout\n c 3m @r <layout\n"
	if rep := run(t, plan(t, readers), 9); len(rep.Files) != 0 || time.Duration(rep.Prediction.Finish) != 3*time.Minute {
		t.Errorf("%v", rep)
	}
	rep := run(t, plan(t, readers+"w 2m @p apply >layout"), 9)
	if time.Duration(rep.Prediction.Finish) != 5*time.Minute || rep.Tiers[0].Blocked != simulate.Span(3*2*time.Minute) || rep.Tiers[0].Items != 3 {
		t.Errorf("%v", rep)
	}
}
