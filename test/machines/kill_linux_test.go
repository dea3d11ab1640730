//go:build machines

package machines

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// soon is how long the files of a dead machine may stay locked if the lease is shortLease.
const soon = 45 * time.Second

const shortLease = "policies: {agent: {ttl: 15s, heartbeat: 3s}}\n"

// longest is how long a grant with a process may last by default without a renewal.
const longest = 3 * time.Minute

// A grant of a process has a short lease by default, because only its end frees the files of a
// machine that is gone.
func TestShortLease(t *testing.T) {
	b := newBed(t, plan{machines: 1})
	m := b.machines[0]
	work := m.begin(b.exec("file", obedient, 10*time.Minute)...)
	until(t, "work began", func() bool { return b.checker.began("file", m) || work.ended() })
	var status struct {
		Held []struct {
			Renewed time.Time `json:"heartbeat_at"`
			Expires time.Time `json:"expires_at"`
		}
	}
	must(t, json.Unmarshal([]byte(m.must("lockkeeper", "status", "--json")), &status))
	if len(status.Held) != 1 || status.Held[0].Expires.Sub(status.Held[0].Renewed) > longest {
		t.Errorf("a grant of a process lasts longer than %v: %+v", longest, status)
	}
}

// A machine that loses its power frees its files when its leases end.
func TestKilledMachine(t *testing.T) {
	b := newBed(t, plan{machines: 3, config: shortLease})
	dead, rival, same := b.machines[0], b.machines[1], b.machines[2]
	for i := range 3 {
		key := fmt.Sprint("file", i)
		work := dead.begin(b.exec(key, stubborn, 10*time.Minute)...)
		until(t, "work began", func() bool { return b.checker.began(key, dead) || work.ended() })
	}
	dead.kill()
	killed := time.Now()
	var next []*command
	for i, m := range []*machine{rival, same, rival} {
		next = append(next, m.begin(b.exec(fmt.Sprint("file", i), obedient, time.Millisecond, "--wait", "90s")...))
	}
	for i, c := range next {
		if c.code() != 0 {
			t.Errorf("file %d: %s", i, c)
		} else if took := c.began.Add(c.took).Sub(killed); took > soon {
			t.Errorf("file %d was free %v after its machine died, want at most %v", i, took, soon)
		}
	}
	b.checker.verify()
}

// A container that starts again in another PID namespace recognizes that its own earlier processes
// are dead, and waits for none of them.
func TestRestartedContainer(t *testing.T) {
	b := newBed(t, plan{machines: 1})
	m := b.machines[0]
	work := m.begin(b.exec("file", stubborn, 10*time.Minute)...)
	until(t, "work began", func() bool { return b.checker.began("file", m) || work.ended() })
	m.kill()
	m.start()
	next := m.begin(b.exec("file", obedient, time.Millisecond, "--wait", "90s")...)
	if next.code() != 0 {
		t.Error(next)
	} else if next.took > soon {
		t.Errorf("the file was free after %v, want at most %v: %s", next.took, soon, next)
	}
	b.checker.verify()
}

// Every job of a machine that dies runs again, once, on another one.
func TestJobsOfKilledMachine(t *testing.T) {
	b := newBed(t, plan{machines: 3, config: shortLease})
	const jobs, slots = 8, 3
	for _, m := range b.machines[1:] {
		m.begin("lockkeeper", "job", "work", "--slots", fmt.Sprint(slots), "--root", "main")
	}
	for i := range jobs {
		key := fmt.Sprint("job", i)
		argv := []string{"lockkeeper", "job", "submit", "--root", "main", "--key", key, "--write", "src/" + key + ".txt", "--"}
		argv = append(argv, b.checker.work(key, stubborn, 3*time.Second)...)
		if i == 0 {
			until(t, "a worker has reported its root", func() bool { return b.machines[0].begin(argv...).code() == 0 })
		} else {
			b.machines[0].must(argv...)
		}
	}
	dead := b.machines[1]
	interrupted := func() (list []string) {
		ended := map[string]bool{}
		for _, r := range b.checker.records() {
			if r.What == "ended" {
				ended[r.Key] = true
			}
		}
		for _, r := range b.checker.records() {
			if r.Machine == dead.name && r.What == "began" && !ended[r.Key] {
				list = append(list, r.Key)
			}
		}
		return list
	}
	until(t, "the machine has work", func() bool { return len(interrupted()) >= 2 })
	dead.kill()
	again := map[string]bool{}
	for _, key := range interrupted() {
		again[key] = true
	}
	if len(again) == 0 {
		t.Fatal("all jobs had ended when the machine died")
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(b.checker.records(), b.machines[0].must("lockkeeper", "job", "list"), b.machines[0].must("lockkeeper", "status"))
		}
	})
	until(t, "all jobs are done", func() bool { return b.checker.ended() == jobs })
	for i := range jobs {
		key, want := fmt.Sprint("job", i), 1
		if again[key] {
			want = 2
		}
		if got := b.checker.count(key, "began"); got != want {
			t.Errorf("%s began %d times, want %d", key, got, want)
		}
		if got := b.checker.count(key, "ended"); got != 1 {
			t.Errorf("%s was completed %d times", key, got)
		}
	}
	until(t, "the queue is empty", func() bool {
		c := b.machines[0].begin("lockkeeper", "job", "list", "--json")
		return c.code() == 0 && strings.Count(c.out.String(), `"completed"`) >= jobs
	})
	b.checker.verify()
}
