//go:build machines

package machines

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// A grant is what `lock acquire --json` prints.
type grant struct {
	ID    string
	Fence uint64
}

// acquireAll acquires different files on machines at once.
func acquireAll(t *testing.T, name string, each int, machines ...*machine) (list []grant) {
	t.Helper()
	var started []*command
	for i := range each {
		for _, m := range machines {
			path := fmt.Sprintf("src/%s-%s-%d.txt", name, m.name, i)
			started = append(started, m.begin("lockkeeper", "lock", "acquire", "--json", "--ttl", "10m", "--wait", "1m", "--write", path))
		}
	}
	for _, c := range started {
		var g grant
		if c.code() != 0 {
			t.Fatal(c)
		}
		must(t, json.Unmarshal([]byte(c.out.String()), &g))
		list = append(list, g)
	}
	return list
}

// highest returns the highest fence. It fails the test if a fence repeats.
func highest(t *testing.T, list []grant) (fence uint64) {
	t.Helper()
	seen := map[uint64]string{}
	for _, g := range list {
		if other := seen[g.Fence]; other != "" {
			t.Errorf("the fence %d was given twice: to grants %s and %s", g.Fence, other, g.ID)
		}
		seen[g.Fence] = g.ID
		fence = max(fence, g.Fence)
	}
	return fence
}

// follows waits until the standby has everything that the primary has.
func (b *bed) follows() {
	b.t.Helper()
	until(b.t, "the standby follows", func() bool {
		return b.primary.sql("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND replay_lsn = pg_current_wal_lsn()") == "1"
	})
}

// failOver kills the primary's server, so that connections to it are refused, and promotes the
// standby.
func (b *bed) failOver() {
	b.t.Helper()
	b.primary.crash()
	b.standby.promote()
}

// A standby that lost the last transactions of its primary gives no fence that the primary gave.
func TestPromotedWithLoss(t *testing.T) {
	b := newBed(t, plan{machines: 3, standby: true})
	all := acquireAll(t, "kept", 2, b.machines...)
	b.follows()
	b.net.both(b.standby.machine, link{dropped: true}, b.primary.machine)
	lost := acquireAll(t, "lost", 4, b.machines...)
	before := highest(t, append(all, lost...))
	b.failOver()
	after := acquireAll(t, "after", 6, b.machines...)
	lowest := slices.MinFunc(after, func(a, b grant) int { return int(a.Fence) - int(b.Fence) })
	if lowest.Fence <= before {
		t.Errorf("after the promotion a grant has the fence %d, and before it one had %d", lowest.Fence, before)
	}
	highest(t, slices.Concat(all, lost, after))
}

// With a synchronous standby nothing is lost: work continues during the promotion, and no other
// holder gets its locks meanwhile.
func TestPromotedWithoutLoss(t *testing.T) {
	b := newBed(t, plan{machines: 3, standby: true})
	b.primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
	b.primary.sql("SELECT pg_reload_conf()")
	b.follows()
	holder, rival := b.machines[0], b.machines[1]
	work := holder.begin(b.exec("file", stubborn, 8*time.Second, "--ttl", "1m")...)
	until(t, "the work began", func() bool { return b.checker.began("file", holder) || work.ended() })
	waits := rival.begin(b.exec("file", obedient, 100*time.Millisecond, "--wait", "1m")...)

	// Grants that are made while the primary dies either exist afterwards, or their command failed.
	var mu sync.Mutex
	var made []grant
	var active sync.WaitGroup
	stop := make(chan struct{})
	for _, m := range b.machines {
		active.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				path := fmt.Sprintf("src/loop-%s-%d.txt", m.name, i)
				c, err := m.launch(nil, "lockkeeper", "lock", "acquire", "--json", "--ttl", "10m", "--write", path)
				if err != nil {
					t.Error(err)
					return
				}
				<-c.done
				var g grant
				if c.cmd.ProcessState.ExitCode() == 0 && json.Unmarshal([]byte(c.out.String()), &g) == nil {
					mu.Lock()
					made = append(made, g)
					mu.Unlock()
				}
			}
		})
	}
	grown := func(by int) {
		mu.Lock()
		from := len(made)
		mu.Unlock()
		until(t, "grants are made", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(made) >= from+by
		})
	}
	grown(5)
	b.failOver()
	grown(5)
	close(stop)
	active.Wait()
	highest(t, made)
	var status struct{ Held []grant }
	must(t, json.Unmarshal([]byte(rival.must("lockkeeper", "status", "--json")), &status))
	held := map[string]uint64{}
	for _, g := range status.Held {
		held[g.ID] = g.Fence
	}
	for _, g := range made {
		if held[g.ID] != g.Fence {
			t.Errorf("the grant %s with fence %d was lost by the promotion", g.ID, g.Fence)
		}
	}
	if work.code() != 0 {
		t.Errorf("work that was running during the promotion: %s", work)
	}
	if waits.code() != 0 {
		t.Errorf("a request that was waiting during the promotion: %s", waits)
	}
	b.checker.verify()
}
