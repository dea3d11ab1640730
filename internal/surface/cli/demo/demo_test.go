package demo

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/surface/view"
)

func content(n byte) lockkeeper.Version {
	return lockkeeper.Version{Kind: lockkeeper.File, Mode: 0o644, Sum: [32]byte{n}}
}

func writes(path string) []lockkeeper.Lock {
	return []lockkeeper.Lock{{Target: lockkeeper.Target{Path: path, Kind: lockkeeper.File}, Mode: lockkeeper.Write}}
}

// twoWriters returns the log of two grants that change one file, one after the other.
func twoWriters() *view.Record {
	event := func(seq uint64, kind lockkeeper.EventKind, grant string) lockkeeper.Event {
		return lockkeeper.Event{Seq: seq, Kind: kind, GrantID: grant, Holder: "j" + grant, Locks: writes("a.rb"), At: time.Unix(int64(seq), 0)}
	}
	landing := func(seq uint64, grant string, old, new byte) *lockkeeper.Landing {
		return &lockkeeper.Landing{Seq: seq, GrantID: grant, State: lockkeeper.Committed,
			Changes: []lockkeeper.PathChange{{Path: "a.rb", Old: content(old), New: content(new)}}}
	}
	return &view.Record{
		Events: []lockkeeper.Event{
			event(1, lockkeeper.EventAcquired, "1"), event(2, lockkeeper.EventLanded, "1"), event(3, lockkeeper.EventReleased, "1"),
			event(4, lockkeeper.EventAcquired, "2"), event(5, lockkeeper.EventGap, "2"), event(6, lockkeeper.EventLanded, "2"), event(7, lockkeeper.EventReleased, "2"),
		},
		Landings: []*lockkeeper.Landing{landing(2, "1", 0, 1), landing(6, "2", 1, 2)},
	}
}

// prove finds each kind of collision in a log that has it, and none in a correct log.
func TestProof(t *testing.T) {
	for name, test := range map[string]struct {
		wrong string
		with  func(rec *view.Record, now map[string]lockkeeper.Version)
	}{
		"as it should be": {"", func(*view.Record, map[string]lockkeeper.Version) {}},
		"two hold it at once": {"while grant 1 held", func(rec *view.Record, _ map[string]lockkeeper.Version) {
			rec.Events = slices.Delete(rec.Events, 2, 3)
		}},
		"it was not held any more": {"did not hold", func(rec *view.Record, _ map[string]lockkeeper.Version) {
			rec.Events[1], rec.Events[2] = rec.Events[2], rec.Events[1]
		}},
		"another file was held": {"did not hold", func(rec *view.Record, _ map[string]lockkeeper.Version) {
			rec.Events[0].Locks = writes("a.rb.bak")
		}},
		"it was only read": {"did not hold", func(rec *view.Record, _ map[string]lockkeeper.Version) {
			rec.Events[0].Locks = []lockkeeper.Lock{{Target: rec.Events[0].Locks[0].Target, Mode: lockkeeper.Read}}
		}},
		"a landing overwrote another": {"no landing had left", func(rec *view.Record, _ map[string]lockkeeper.Version) {
			rec.Landings[1].Changes[0].Old = content(0)
		}},
		"a write bypassed the gate": {"not what the last landing left", func(_ *view.Record, now map[string]lockkeeper.Version) {
			now["a.rb"] = content(9)
		}},
		"something else changed": {"b.rb is not what", func(_ *view.Record, now map[string]lockkeeper.Version) {
			now["b.rb"] = content(9)
		}},
		"a landing is not on record": {"not in the log", func(rec *view.Record, _ map[string]lockkeeper.Version) {
			rec.Landings = rec.Landings[:1]
		}},
	} {
		t.Run(name, func(t *testing.T) {
			rec, now := twoWriters(), map[string]lockkeeper.Version{"a.rb": content(2), "b.rb": content(5)}
			test.with(rec, now)
			p := prove(rec, map[string]lockkeeper.Version{"a.rb": content(0), "b.rb": content(5)}, now)
			if test.wrong == "" && p.String() != "writes landed 2, writes refused 1, collisions 0" {
				t.Error(p, p.Collisions)
			}
			if found := strings.Join(p.Collisions, "\n"); test.wrong != "" && !strings.Contains(found, test.wrong) {
				t.Errorf("%q is not among %q", test.wrong, found)
			}
		})
	}
}

// The picture shows who worked, who waited and when the run crashed, in the given width.
func TestPicture(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(1000+int64(s), 0) }
	did := func(what view.Activity, from, to int) view.Interval {
		return view.Interval{What: what, Began: at(from), Over: at(to), USD: 1}
	}
	killed := did(view.ActivityAgent, 11, 11)
	killed.USD = 0
	p := picture{crashed: at(13), Timeline: &view.Timeline{
		Began: at(0), Over: at(20),
		Lanes: []view.Lane{
			{Work: "one/b1", Stretches: []view.Interval{did(view.ActivityPreparing, 0, 7), did(view.ActivityAgent, 1, 3), did(view.ActivityCheck, 4, 5), did(view.ActivityLanded, 6, 6)}},
			{Work: "one/b2", Stretches: []view.Interval{did(view.ActivityQueued, 0, 1), did(view.ActivityBlocked, 1, 10), did(view.ActivityPreparing, 10, 15), killed,
				did(view.ActivityQueued, 15, 16), did(view.ActivityPreparing, 16, 20)}},
		},
		Waits: []view.LockWait{{Work: "one/b2", Behind: []string{"one/b1"}, Paths: []string{"app/a.rb"}, Took: 9}},
	}}
	var out bytes.Buffer
	p.print(&out, inASCII, 30, func(_, text string) string { return text }) // a column a second
	p.printWaits(&out)
	const want = `  one/b1  -###==*-     |
  one/b2  ..........-##| .----
          0s        10s
  # agent  = test  * landed  - locks held  . waiting  | kill -9
  one/b2 waited 9.0s for one/b1 (a.rb)
`
	if out.String() != want {
		t.Errorf("\n%swant\n%s", out.String(), want)
	}
	if got := axis(22, 21*time.Second); got != "0s        10s         " {
		t.Errorf("axis %q has half a number", got)
	}
}
