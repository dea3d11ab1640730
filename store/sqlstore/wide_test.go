package sqlstore

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
)

// The cost of a conflict with a large grant must not grow with the square of its size. Its
// record is read once, not once for each of its targets.
func TestMeetingLargeGrants(t *testing.T) {
	sites(t, func(t *testing.T, s site) {
		m := lock.New(s.store(t, Options{}), lock.Options{})
		var paths []string
		for i := range 8_000 {
			paths = append(paths, fmt.Sprintf("some/directory/%d/a-file-with-a-name-%d.rb", i%100, i))
		}
		began := time.Now()
		g, err := m.TryAcquire(t.Context(), request("h", paths...))
		if err != nil {
			t.Fatal(err)
		}
		acquired := time.Since(began)
		all := lockkeeper.Lock{Target: lockkeeper.Target{Path: lockkeeper.Root, Kind: lockkeeper.Dir}, Mode: lockkeeper.Read}
		// Finding that one of the locks blocks must take less time than acquiring them all,
		// because the list of blockers is cut off. The machine may be busy with something else in
		// the meantime, so one of several tries counts.
		took := time.Duration(math.MaxInt64)
		for try := 0; try < 20 && took > acquired; try++ {
			began = time.Now()
			_, err = m.TryAcquire(t.Context(), lockkeeper.Request{Holder: "k", Locks: []lockkeeper.Lock{all}})
			took = min(took, time.Since(began))
			var blocked *lockkeeper.BlockedError
			if !errors.As(err, &blocked) || !blocked.Truncated || blocked.Conflicts[0].GrantID != g.ID {
				t.Errorf("got %.200v", err)
			}
		}
		if took > acquired {
			t.Errorf("took %v, and to acquire them %v", took, acquired)
		}
		t.Logf("took %v", took)
	})
}
