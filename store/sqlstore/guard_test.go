package sqlstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// filled returns a database in which one path is held and whose write-ahead log is empty.
func filled(t *testing.T) (site, *lock.Grant) {
	t.Helper()
	s := sqliteSite(t)
	g := fill(t, s, "held/by/another")
	raw(t, s.where, `PRAGMA wal_checkpoint(TRUNCATE)`)
	return s, g
}

// fill opens a site, acquires a path without expiry and closes the store.
func fill(t *testing.T, s site, path string) *lock.Grant {
	t.Helper()
	st, err := s.open(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := lock.New(st, lock.Options{}).TryAcquire(t.Context(), lockkeeper.Request{Holder: "h", Policy: "person", Locks: write(path)})
	if err = errors.Join(err, st.Close()); err != nil {
		t.Fatal(err)
	}
	return g
}

// raw runs SQL on a database without going through the store.
func raw(t testing.TB, path, sql string) {
	t.Helper()
	conn, err := sqlite3.OpenFlags(path, sqlite3.OPEN_READWRITE)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Exec(sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// refused checks that a database does not open, that the error contains part, and that the
// directory is unchanged.
func refused(t *testing.T, s site, part string) {
	t.Helper()
	before := listing(t, filepath.Dir(s.where))
	st, err := OpenSQLite(t.Context(), s.where, s.space, Options{Busy: time.Second})
	if err == nil {
		st.Close()
	}
	wantStore(t, err, part)
	if after := listing(t, filepath.Dir(s.where)); !slices.Equal(before, after) {
		t.Errorf("the refusal left %v where %v was", after, before)
	}
}

// listing returns the names in a directory, except the files that SQLite keeps beside an open
// database.
func listing(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), "-shm") && !strings.HasSuffix(e.Name(), "-wal") {
			names = append(names, e.Name())
		}
	}
	return names
}

func TestSQLiteMissing(t *testing.T) {
	s := site{where: filepath.Join(t.TempDir(), "state.db"), space: "s"}
	refused(t, s, "missing")
	s.where = filepath.Join(t.TempDir(), "no", "such", "folder.db")
	if _, err := OpenSQLite(t.Context(), s.where, s.space, Options{}); err == nil {
		t.Error("opened in a folder that does not exist")
	} else {
		wantStore(t, err, "missing")
	}
}

// connect does not create a file that was removed between the check and the open.
func TestSQLiteConnectMakesNothing(t *testing.T) {
	dir := t.TempDir()
	s := &SQLite{path: filepath.Join(dir, "state ?#%20.db")}
	_, err := s.connect(t.Context())
	wantStore(t, err, "cannot be opened")
	if left := listing(t, dir); len(left) != 0 {
		t.Errorf("made %v", left)
	}
}

func TestSQLiteCorrupt(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	garbage := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		return b
	}
	t.Run("header", func(t *testing.T) {
		s, _ := filled(t)
		overwrite(t, s.where, 0, garbage(100))
		refused(t, s, "damaged")
	})
	t.Run("schema", func(t *testing.T) {
		s, _ := filled(t)
		overwrite(t, s.where, 100, garbage(4096-100))
		refused(t, s, "damaged")
	})
	t.Run("middle", func(t *testing.T) {
		s, _ := filled(t)
		info, err := os.Stat(s.where)
		if err != nil {
			t.Fatal(err)
		}
		overwrite(t, s.where, 4096, garbage(int(info.Size())-4096))
		st, err := OpenSQLite(t.Context(), s.where, s.space, Options{})
		if err == nil { // the damage is found only when the pages are read
			defer st.Close()
			_, err = lock.New(st, lock.Options{}).TryAcquire(t.Context(), request("k", "held/by/another"))
		}
		wantStore(t, err, "damaged")
	})
	t.Run("truncated", func(t *testing.T) {
		s, _ := filled(t)
		if err := os.Truncate(s.where, 4096); err != nil {
			t.Fatal(err)
		}
		st, err := OpenSQLite(t.Context(), s.where, s.space, Options{})
		if err == nil {
			st.Close()
		}
		wantStore(t, err, "damaged")
	})
	t.Run("empty", func(t *testing.T) {
		s, _ := filled(t)
		if err := os.Truncate(s.where, 0); err != nil {
			t.Fatal(err)
		}
		refused(t, s, "not a Lockkeeper database")
	})
}

func overwrite(t *testing.T, path string, at int64, b []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(b, at)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// A database of another program is refused and left unchanged.
func TestSQLiteNotOurs(t *testing.T) {
	dir := t.TempDir()
	s := site{where: filepath.Join(dir, "theirs.db"), space: "s"}
	conn, err := sqlite3.Open(s.where)
	if err != nil {
		t.Fatal(err)
	}
	err = conn.Exec(`CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)`)
	if err = errors.Join(err, conn.Close()); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(s.where)
	if err != nil {
		t.Fatal(err)
	}
	refused(t, s, "not a Lockkeeper database")
	if after, err := os.ReadFile(s.where); err != nil || !bytes.Equal(before, after) {
		t.Errorf("another user's database was changed, %v", err)
	}
	s.where = filepath.Join(dir, "letter.txt")
	if err := os.WriteFile(s.where, []byte("Dear Ada, this is no database at all, and long enough to have been one of them if it were, I think."), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, s, "damaged")
	s.where = dir
	refused(t, s, "cannot be opened")
}

func TestSQLiteNewerOrOfAnotherSpace(t *testing.T) {
	s, _ := filled(t)
	other := s
	other.space = "another"
	refused(t, other, "different space")
	raw(t, s.where, `PRAGMA user_version = 99`)
	refused(t, s, "format 99 is newer")
}

// A database without the first schema step is migrated, even if several processes open it at
// once.
func TestSQLiteMigrates(t *testing.T) {
	s := site{kind: "sqlite", where: filepath.Join(t.TempDir(), "state.db"), space: "s"}
	conn, err := sqlite3.Open(s.where)
	if err != nil {
		t.Fatal(err)
	}
	err = conn.Exec(fmt.Sprintf(`PRAGMA application_id = %d`, applicationID))
	if err = errors.Join(err, conn.Close(), makeWriteTurn(s.where+"-turn")); err != nil {
		t.Fatal(err)
	}
	errs := make(chan error, 4)
	for range cap(errs) {
		go func() {
			st, err := OpenSQLite(context.Background(), s.where, s.space, Options{})
			if err == nil {
				st.Close()
			}
			errs <- err
		}()
	}
	for range cap(errs) {
		wantStore(t, <-errs, "different space") // the schema exists but contains no space
	}
	raw(t, s.where, `INSERT INTO spaces (id, seq, incarnation, boot, created_at) VALUES ('s', 0, 'x', '', 0)`)
	if err := RestoreSQLite(t.Context(), s.where, s.space, Options{}); err != nil {
		t.Fatal(err)
	}
	fill(t, s, "a")
}

func TestSQLiteUnreadable(t *testing.T) {
	s, _ := filled(t)
	for path := filepath.Dir(s.where); path != os.TempDir() && len(path) > 1; path = filepath.Dir(path) {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(s.where, 0o400); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() != 0 {
		refused(t, s, "you may not read and write it")
		return
	}
	// Root can read every file, so another user must open this one.
	bin := filepath.Join(t.TempDir(), "opener")
	self, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(bin, self, 0o755)
	}
	if err == nil {
		err = os.Chmod(filepath.Dir(bin), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, helperArg, "open", s.kind, s.where, s.space)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, _ := cmd.CombinedOutput()
	if !strings.Contains(string(out), "you may not read and write it") {
		t.Errorf("an opener without permission said %q", out)
	}
}

func TestSQLiteReplacedOrRemovedWhileOpen(t *testing.T) {
	for what, change := range map[string]func(t *testing.T, s site){
		"replaced": func(t *testing.T, s site) {
			other := sqliteSite(t)
			if err := os.Rename(other.where, s.where); err != nil {
				t.Fatal(err)
			}
		},
		"removed": func(t *testing.T, s site) { // as git clean -fdx does
			files, err := filepath.Glob(s.where + "*")
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				if err := os.RemoveAll(f); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := sqliteSite(t)
			st := s.sqlite(t, Options{})
			m := lock.New(st, lock.Options{})
			g, err := m.TryAcquire(t.Context(), request("h", "a"))
			if err != nil {
				t.Fatal(err)
			}
			change(t, s)
			_, err = m.TryAcquire(t.Context(), request("k", "b"))
			wantStore(t, err, what+" ")
			_, err = m.Renew(t.Context(), g.ID, g.Token)
			wantStore(t, err, "while it was in use")
			_, err = m.ActiveGrants(t.Context())
			wantStore(t, err, "while it was in use")
			if _, err := os.Stat(s.where); what == "removed" && !errors.Is(err, fs.ErrNotExist) {
				t.Error("the database was silently made again")
			}
		})
	}
}

// A database with a second hard link, or without its turn file, is refused.
func TestSQLiteSecondLife(t *testing.T) {
	s, _ := filled(t)
	alias := filepath.Join(t.TempDir(), "alias.db")
	if err := os.Link(s.where, alias); err != nil {
		t.Fatal(err)
	}
	refused(t, s, "2 names")
	if err := errors.Join(os.Remove(alias), os.Remove(s.where+"-turn")); err != nil {
		t.Fatal(err)
	}
	refused(t, s, "remembers the last change is missing")
	if err := RestoreSQLite(t.Context(), s.where, s.space, Options{}); err != nil {
		t.Fatal(err)
	}
	if g := fill(t, s, "on"); g.Fence < epochGap {
		t.Errorf("fence %d after numbers were lost, want a new epoch", g.Fence)
	}
}

// If the whole directory of the database is restored, the store notices by the last number in
// the file outside of it.
func TestSQLiteRemembersElsewhere(t *testing.T) {
	s, _ := filled(t)
	elsewhere, err := os.OpenFile(filepath.Join(t.TempDir(), "mark"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer elsewhere.Close()
	take := func(path string) error {
		st, err := OpenSQLite(t.Context(), s.where, s.space, Options{Mark: elsewhere})
		if err != nil {
			return err
		}
		defer st.Close()
		_, err = lock.New(st, lock.Options{}).TryAcquire(t.Context(), request("h", path))
		return err
	}
	if err := take("first"); err != nil {
		t.Fatal(err)
	}
	old := map[string][]byte{}
	for _, f := range []string{"", "-wal", "-turn"} {
		if old[f], err = os.ReadFile(s.where + f); err != nil {
			t.Fatal(err)
		}
	}
	if err := take("second"); err != nil {
		t.Fatal(err)
	}
	for f, b := range old { // in place, so the files keep their inodes
		if err := errors.Join(os.WriteFile(s.where+f, b, 0o600), os.RemoveAll(s.where+"-shm")); err != nil {
			t.Fatal(err)
		}
	}
	wantStore(t, take("second"), "overwritten with a backup")
}

// A failed creation leaves no partial database, and a new database never replays an old log.
func TestSQLiteCreate(t *testing.T) {
	s, _ := filled(t)
	wantStore(t, CreateSQLite(t.Context(), s.where, "other"), "file already exists")
	fill(t, s, "more")
	if err := os.Remove(s.where); err != nil {
		t.Fatal(err)
	}
	wantStore(t, CreateSQLite(t.Context(), s.where, s.space), "-wal")
	if err := os.Remove(s.where + "-wal"); err != nil {
		t.Fatal(err)
	}
	wantStore(t, CreateSQLite(t.Context(), s.where, s.space), "-turn")
	victim := filepath.Join(t.TempDir(), "victim")
	if err := errors.Join(os.Remove(s.where+"-turn"), os.WriteFile(victim, []byte("kept"), 0o600), os.Symlink(victim, s.where+"-turn")); err != nil {
		t.Fatal(err)
	}
	wantStore(t, CreateSQLite(t.Context(), s.where, s.space), "-turn")
	if b, err := os.ReadFile(victim); string(b) != "kept" {
		t.Errorf("behind the link is now %q, %v", b, err)
	}
	if err := errors.Join(os.Remove(s.where+"-turn"), CreateSQLite(t.Context(), s.where, s.space)); err != nil {
		t.Fatal(err)
	}
	if g := fill(t, s, "first"); g.Fence != 1 {
		t.Errorf("fence %d in a new space, want 1", g.Fence)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	if err := CreateSQLite(ctx, filepath.Join(dir, "state.db"), "s"); err == nil {
		t.Error("made although cancelled")
	}
	if left := listing(t, dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// If a stopped process holds the write turn, a waiting writer's error names it within the time
// limit. The error differs if the database is locked by a program that does not use the write
// turn.
func TestSQLiteBusy(t *testing.T) {
	s := sqliteSite(t)
	st := s.sqlite(t, Options{Busy: 300 * time.Millisecond})
	other := start(t, "write", s)
	other.expect("writing")
	if err := other.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	within(t, 3*time.Second, func() {
		err := st.Update(t.Context(), func(store.Tx) error { return nil })
		wantStore(t, err, fmt.Sprintf("pid %d ", other.cmd.Process.Pid))
	})
	if err := st.View(t.Context(), func(store.Reader) error { return nil }); err != nil {
		t.Errorf("a reader was blocked by a stopped writer: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	tired := errors.New("tired of waiting")
	cancel(tired)
	if err := st.Update(ctx, func(store.Tx) error { return nil }); err != tired {
		t.Errorf("cancelled: %v", err)
	}
	other.kill()
	if err := st.Update(t.Context(), func(store.Tx) error { return nil }); err != nil {
		t.Errorf("after the stopped writer was killed: %v", err)
	}

	conn, err := sqlite3.OpenFlags(s.where, sqlite3.OPEN_READWRITE)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Exec(`BEGIN IMMEDIATE`); err != nil {
		t.Fatal(err)
	}
	wantStore(t, st.Update(t.Context(), func(store.Tx) error { return nil }), "a program other than Lockkeeper")
}
