package process

import (
	"os"
	"testing"
	"time"
)

// Control groups that crashes left long ago are removed. A group in which a command is about to
// start, or still runs, stays.
func TestAbandonedCgroupsAreRemoved(t *testing.T) {
	before := newCgroup()
	if before == nil {
		t.Skip("no control group can be made here")
	}
	aged := func(age time.Duration) *cgroup {
		c := newCgroup()
		if c == nil {
			t.Fatal("no control group")
		}
		t.Cleanup(func() { c.remove() })
		at := time.Now().Add(-age)
		if err := os.Chtimes(c.dir, at, at); err != nil {
			t.Fatal(err)
		}
		return c
	}
	t.Cleanup(func() { before.remove() })
	old, fresh := aged(2*cgroupRetention), aged(0)
	newest := aged(0)
	if old.has("cgroup.procs") {
		t.Error("an abandoned control group is left")
	}
	for _, c := range []*cgroup{before, fresh, newest} {
		if !c.has("cgroup.procs") {
			t.Error("a control group that is about to be used was removed")
		}
	}
}
