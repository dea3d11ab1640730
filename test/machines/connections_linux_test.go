//go:build machines

package machines

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A server with 100 connections serves more commands than that: none is killed, and all run.
func TestFewConnections(t *testing.T) {
	crowds := []int{200}
	if torture() > 1 {
		crowds = append(crowds, 40)
	}
	for _, commands := range crowds {
		t.Run(fmt.Sprint(commands), func(t *testing.T) {
			b := newBed(t, plan{machines: 2, settings: "max_connections = 100\n"})
			most, refused := 0, 0
			var started []*command
			for i := range commands {
				key := fmt.Sprint("file", i)
				started = append(started, b.machines[i%2].begin(b.exec(key, obedient, 5*time.Second, "--wait", "5m")...))
			}
			until(t, "all commands have ended", func() bool {
				// The server refuses the administrator too while all connections are being opened.
				look := b.primary.begin("psql", "-h", "/tmp", "-U", "postgres", "-d", "locks", "-qtAc", "SELECT count(*) FROM pg_stat_activity WHERE usename = 'lock'")
				if look.code() != 0 {
					refused++
				} else {
					n, err := strconv.Atoi(strings.TrimSpace(look.out.String()))
					must(t, err)
					most = max(most, n)
				}
				for _, c := range started {
					if !c.ended() {
						return false
					}
				}
				return true
			})
			failed := 0
			for _, c := range started {
				if c.code() != 0 {
					if failed++; failed <= 3 {
						t.Error(c)
					}
				}
			}
			if failed > 0 {
				t.Errorf("%d of %d commands failed", failed, commands)
			}
			if got := b.checker.ended(); got != commands {
				t.Errorf("%d of %d commands came to their end", got, commands)
			}
			t.Logf("at most %d connections; the server refused %d looks", most, refused)
			b.checker.verify()
		})
	}
}

// The server's connections are all in use by others for a while. Running work continues as
// long as its lease can be renewed, and a waiting request continues to wait.
func TestNoConnectionLeft(t *testing.T) {
	b := newBed(t, plan{machines: 2, settings: "max_connections = 20\n"})
	work := b.machines[0].begin(b.exec("file", obedient, 20*time.Second, "--ttl", "30s")...)
	until(t, "work began", func() bool { return b.checker.began("file", b.machines[0]) || work.ended() })
	var others []*command
	for range 30 { // more than there are, so that none is left
		others = append(others, b.primary.begin("psql", "-h", "/tmp", "-U", "lock", "-d", "locks", "-qtAc", "SELECT pg_sleep(100)"))
	}
	until(t, "no connection is left", func() bool {
		return b.primary.begin("psql", "-h", "/tmp", "-U", "lock", "-d", "locks", "-qtAc", "SELECT 1").code() != 0
	})
	late := b.machines[1].begin(b.exec("file", obedient, time.Millisecond, "--wait", "1m")...)
	b.primary.sql("SELECT pg_sleep(8)") // as an administrator, for whom the server keeps connections
	b.primary.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'lock' AND query LIKE '%pg_sleep(100)%'")
	for _, c := range others {
		c.code()
	}
	if work.code() != 0 {
		t.Error(work)
	}
	if late.code() != 0 {
		t.Error(late)
	}
	b.checker.verify()
}
