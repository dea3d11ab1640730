package sqlstore

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"lockkeeper"
)

// encoding/json decodes the hand-written JSON to the same value, for paths and texts of every
// kind.
func TestJSONByHand(t *testing.T) {
	paths := []string{"a", "a b/c", `quote"d`, `back\slash`, "tab\there", "ünïcode/é", "é", "<&>", "\u2028", `","kind":"`, `"}`, `x"},{"path":"y`, ".", "\x7f"}
	var locks []lockkeeper.Lock
	for i, p := range paths {
		locks = append(locks, lockkeeper.Lock{
			Target: lockkeeper.Target{Path: p, Kind: lockkeeper.File + lockkeeper.Kind(i%4)}, Mode: lockkeeper.Read + lockkeeper.Mode(i%3)})
	}
	for n := range len(locks) + 1 {
		for _, list := range [][]lockkeeper.Lock{locks[:n], locks[n:]} {
			text := encodeLocks(list)
			var std []lockkeeper.Lock
			if err := json.Unmarshal([]byte(text), &std); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			got, err := decodeLocks(text)
			if err != nil || len(got) != len(list) || len(list) > 0 && (!reflect.DeepEqual(got, list) || !reflect.DeepEqual(std, list)) {
				t.Fatalf("%s reads as %v, %v and by encoding/json as %v", text, got, err, std)
			}
		}
	}
	for _, bad := range []string{"[", `[{"path":"a"`, `[{"path":"a","kind":"file","mode":"write"}`, `[{"path":"a","kind":"x","mode":"write"}]`, "x"} {
		if got, err := decodeLocks(bad); err == nil {
			t.Errorf("%s reads as %v", bad, got)
		}
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	events := []lockkeeper.Event{
		{Kind: lockkeeper.EventReleased},
		{Kind: lockkeeper.EventRecovered, Actor: lockkeeper.Actor{Name: "Ünal 'x' \"y\"", Kind: lockkeeper.ActorPerson}, GrantID: "g", Holder: `h"\`,
			Locks: locks, Reason: "because\n\"so\"", Conditions: []lockkeeper.Condition{{Name: "n", Held: true, Fact: "f"}},
			Conflicts: []lockkeeper.ConflictInfo{{Path: "p", Mode: lockkeeper.Read, BlockingMode: lockkeeper.Write, AcquiredAt: at, ExpiresAt: &at}},
			Data:      map[string]string{"k": "v"}},
	}
	for _, ev := range events {
		text, err := encodeEvent(&ev)
		if err != nil {
			t.Fatal(err)
		}
		var got lockkeeper.Event
		if err := json.Unmarshal([]byte(text), &got); err != nil || !reflect.DeepEqual(got, ev) {
			t.Errorf("%s reads as %+v, %v", text, got, err)
		}
	}
}
