//go:build machines

package machines

import (
	"strings"
	"testing"
	"time"
)

// A host that answers nothing costs a command at most some seconds, if a later one of the URL
// answers.
func TestFirstHostIsGone(t *testing.T) {
	b := newBed(t, plan{machines: 1, standby: true})
	m := b.machines[0]
	b.follows()
	b.cut(b.primary.machine)
	b.standby.promote()
	best := time.Hour // the machine may be busy with something else, so one of several counts
	for range 3 {
		c := m.begin("lockkeeper", "lock", "exec", "--write", "src/a.txt", "--", "true")
		if c.code() != 0 {
			t.Fatal(c)
		}
		t.Logf("took %v", c.took)
		best = min(best, c.took)
	}
	if best > 5*time.Second {
		t.Errorf("every command took at least %v", best)
	}
}

const poolSettings = `[databases]
locks = host=10.77.0.101 dbname=locks
[pgbouncer]
listen_addr = *
listen_port = 6432
unix_socket_dir =
auth_type = scram-sha-256
auth_file = /root/users.txt
pool_mode = transaction
max_client_conn = 200
default_pool_size = 10
user = nobody
logfile = /dev/null
pidfile = /tmp/pool.pid
`

// PgBouncer in transaction mode works, or the program refuses it and says why.
func TestPooledInTransactions(t *testing.T) {
	b := newBed(t, plan{machines: 2, store: func(b *bed) string {
		pool := newMachine(t, b.net, b.dir, "pool", poolNumber)
		pool.write("pool.ini", poolSettings)
		pool.write("users.txt", `"lock" "`+password+"\"\n")
		pool.must("chmod", "755", home)
		pool.begin("pgbouncer", home+"/pool.ini")
		pool.waitListening(6432)
		return "postgres://lock@" + pool.addr() + ":6432/locks?sslmode=disable"
	}})
	first := b.machines[0].begin(b.exec("file", stubborn, 5*time.Second, "--ttl", "10s")...)
	until(t, "work began", func() bool { return b.checker.began("file", b.machines[0]) || first.ended() })
	if first.ended() && first.code() != 0 {
		if text := strings.ToLower(first.err.String()); !strings.Contains(text, "pgbouncer") && !strings.Contains(text, "transaction mode") || !strings.Contains(text, "next:") {
			t.Errorf("a pool that cannot be used is not named: %s", first)
		}
		return
	}
	second := b.machines[1].begin(b.exec("file", obedient, time.Millisecond, "--wait", "1m")...)
	var many []*command
	for i := range 20 {
		many = append(many, b.machines[i%2].begin("lockkeeper", "lock", "exec", "--write", "src/many"+string(rune('a'+i))+".txt", "--wait", "1m", "--", "true"))
	}
	for _, c := range append(many, first, second) {
		if c.code() != 0 {
			t.Error(c)
		}
	}
	b.checker.verify()
}
