package sqlstore

import (
	"fmt"
	"os"
	"testing"

	"lockkeeper/lock"
)

// Short commands that run one after another must not leave a growing write-ahead log behind.
// Each command would read all of it and copy it into the database with each commit.
func TestLogOfShortCommandsStaysSmall(t *testing.T) {
	s := sqliteSite(t)
	log := func() int64 {
		t.Helper()
		info, err := os.Stat(s.where + "-wal")
		if os.IsNotExist(err) {
			return 0
		}
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	command := func(n int) {
		t.Helper()
		store, err := OpenSQLite(t.Context(), s.where, s.space, Options{})
		if err != nil {
			t.Fatal(err)
		}
		m := lock.New(store, lock.Options{})
		if _, err := m.TryAcquire(t.Context(), request("h", fmt.Sprintf("a/%d", n))); err != nil {
			t.Fatal(err)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	const commands, largestCommit = 150, 64 << 10
	removed := false
	for n := range commands {
		before := log()
		command(n)
		after := log()
		removed = removed || after < before
		if after > logKept+largestCommit {
			t.Fatalf("after %d commands the log has %d bytes", n+1, after)
		}
	}
	if !removed {
		t.Fatalf("%d commands wrote too little to see anything: the log has %d bytes", commands, log())
	}
	// If another process has the database open, that process takes care of the log.
	other, err := OpenSQLite(t.Context(), s.where, s.space, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	grants, err := lock.New(other, lock.Options{}).ActiveGrants(t.Context())
	if err != nil || len(grants) != commands {
		t.Fatalf("%d grants, %v, want %d", len(grants), err, commands)
	}
	for n := range commands {
		before := log()
		command(commands + n)
		if log() < before {
			t.Fatal("the log was removed under another process")
		}
	}
	if grants, err := lock.New(other, lock.Options{}).ActiveGrants(t.Context()); err != nil || len(grants) != 2*commands {
		t.Fatalf("%d grants, %v, want %d", len(grants), err, 2*commands)
	}
}
