package access_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/surface/access"
)

// Several servers are recorded side by side. The end or the death of one hides no other.
func TestServers(t *testing.T) {
	b, dir := book(t)
	state := map[int]lockkeeper.Liveness{}
	liveness := func(p lockkeeper.Process) lockkeeper.Liveness { return state[p.PID] }
	want := func(addresses ...string) {
		t.Helper()
		list, err := b.Servers(liveness)
		must(t, err)
		var got []string
		for _, s := range list {
			got = append(got, s.Address)
		}
		if len(got) != len(addresses) {
			t.Fatalf("%q, want %q", got, addresses)
		}
		for i := range got {
			if got[i] != addresses[i] {
				t.Fatalf("%q, want %q", got, addresses)
			}
		}
	}
	announce := func(pid int, address, command string, age time.Duration) string {
		t.Helper()
		state[pid] = lockkeeper.ProcessAlive
		id, err := b.Announce(t.Context(), access.Server{Address: address, Command: command, Process: &lockkeeper.Process{PID: pid}, Since: noon.Add(-age)})
		must(t, err)
		return id
	}
	want()
	announce(1, "old serve", "serve", 3*time.Hour)
	announce(2, "new serve", "serve", time.Hour)
	run := announce(3, "run", "run", time.Minute)
	announce(4, "unseen", "serve", 0)
	state[4] = lockkeeper.ProcessUnknown
	want("new serve", "old serve", "run", "unseen")

	must(t, b.Withdraw(run), b.Withdraw(run))
	want("new serve", "old serve", "unseen")

	state[2] = lockkeeper.ProcessDead
	must(t, os.WriteFile(filepath.Join(dir, "servers", "damaged.json"), []byte("{"), 0o600))
	want("old serve", "unseen")
	state[2] = lockkeeper.ProcessAlive // another process with its number
	want("old serve", "unseen")
	files, err := os.ReadDir(filepath.Join(dir, "servers"))
	must(t, err)
	if len(files) != 2 {
		t.Errorf("%d records are kept", len(files))
	}
}
