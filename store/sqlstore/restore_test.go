package sqlstore

import (
	"errors"
	"os"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// shows: GP-4
func TestSQLiteRestored(t *testing.T) {
	must := func(t *testing.T, errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	for what, c := range map[string]struct {
		restore func(t *testing.T, path string, backup []byte)
		part    string
	}{
		"copied elsewhere": {func(t *testing.T, path string, backup []byte) {
			must(t, os.Remove(path+"-wal"), os.Remove(path), os.WriteFile(path+".new", backup, 0o600), os.Rename(path+".new", path))
		}, "restored from a backup"},
		"copied over": {func(t *testing.T, path string, backup []byte) { // like cp, which keeps the inode
			must(t, os.Remove(path+"-wal"), os.WriteFile(path, backup, 0o600))
		}, "overwritten with a backup"},
		"log of writes lost": {func(t *testing.T, path string, _ []byte) {
			must(t, os.Remove(path+"-wal"))
		}, "its -wal file was lost"},
		"log of writes damaged": {func(t *testing.T, path string, _ []byte) { // SQLite ignores the log after the damage
			overwrite(t, path+"-wal", 100, []byte("not what was written here"))
		}, "its -wal file was lost"},
	} {
		t.Run(what, func(t *testing.T) {
			s, old := filled(t)
			backup, err := os.ReadFile(s.where)
			must(t, err)
			newer := fill(t, s, "later")
			c.restore(t, s.where, backup)
			must(t, os.Remove(s.where+"-shm"))
			st, err := OpenSQLite(t.Context(), s.where, s.space, Options{})
			if err == nil {
				_, err = lock.New(st, lock.Options{}).TryAcquire(t.Context(), request("k", "later"))
				st.Close()
			}
			wantStore(t, err, c.part)
			for range 2 { // the second call changes nothing
				if err := RestoreSQLite(t.Context(), s.where, s.space, Options{}); err != nil {
					t.Fatal(err)
				}
			}
			again := fill(t, s, "later")
			if first := epochOf(t, s); again.Fence <= newer.Fence+epochGap/2 || again.Fence != first+2 {
				t.Errorf("fence %d after %d was lost: want the second number of one new epoch", again.Fence, newer.Fence)
			}
			_, err = lock.New(s.store(t, Options{}), lock.Options{}).TryAcquire(t.Context(), request("k", "held/by/another"))
			var blocked *lockkeeper.BlockedError
			if !errors.As(err, &blocked) || blocked.Conflicts[0].GrantID != old.ID {
				t.Errorf("a grant that the backup has is not held any more: %v", err)
			}
		})
	}
}

// epochOf returns the first number of the current epoch.
func epochOf(t *testing.T, s site) uint64 {
	t.Helper()
	var n int64
	err := s.store(t, Options{}).Update(t.Context(), func(lt store.Tx) error {
		return lt.(*tx).query(`SELECT epoch FROM spaces`, nil, func(scan func(...any) error) error { return scan(&n) })
	})
	if err != nil {
		t.Fatal(err)
	}
	return uint64(n)
}

func TestEpochs(t *testing.T) {
	day := time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC)
	last := uint64(17)
	for i := range 5 { // several restores within one minute
		next := nextEpoch(last, day, false)
		if next < last+epochGap/2 {
			t.Fatalf("round %d: %d after %d", i, next, last)
		}
		last = next + 3
	}
	if next := nextEpoch(last, day.AddDate(-10, 0, 0), false); next <= last {
		t.Errorf("with the clock set back: %d after %d", next, last)
	}
	lost := nextEpoch(17, day.Add(20*time.Minute), false) // by a primary whose clock was ahead
	if next := nextEpoch(17, day, true); next <= lost {
		t.Errorf("after a promotion %d, and %d was lost", next, lost)
	}
	if far := nextEpoch(0, day.AddDate(60, 0, 0), true); far+epochGap >= 1<<53 {
		t.Errorf("%d is not exact for every reader of JSON", far)
	}
}
