package sqlstore

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockkeeper/lock"
)

// fenceOf opens the site as a new process does, acquires a path, and returns the fence.
func fenceOf(t *testing.T, s site, path string) uint64 {
	t.Helper()
	st := s.postgres(t, Options{})
	g, err := lock.New(st, lock.Options{}).TryAcquire(t.Context(), request("h", path))
	if err != nil {
		t.Fatal(err)
	}
	return g.Fence
}

// higher fails if a fence is not above all that were given before.
func higher(t *testing.T, fence uint64, given []uint64) {
	t.Helper()
	for _, old := range given {
		if fence <= old {
			t.Errorf("fence %d after fence %d was given", fence, old)
		}
	}
}

// detach makes a standby lose the transactions that follow.
func (c *cluster) detach() {
	c.t.Helper()
	asServer(c.t, filepath.Dir(c.data), "pg_ctl", "-D", c.data, "-s", "-w", "-m", "fast", "stop")
	c.append("postgresql.auto.conf", "primary_conninfo = ''\n")
	c.start()
}

// A standby that lost transactions gives no fence twice, from its first grant on: also not those of a primary
// that restarted just before, and with a store that was open all the time.
func TestPostgresPromotedStandby(t *testing.T) {
	t.Parallel()
	for round := range 3 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			primary := newCluster(t)
			s := primary.ordinary()
			given := []uint64{fenceOf(t, s, "before")}
			standby := primary.standby()
			eventually(t, func() error {
				conn := foreignTo(t, standby.at(s).where)
				defer conn.Close(context.Background())
				var seq uint64
				if err := conn.QueryRow(t.Context(), `SELECT seq FROM spaces`).Scan(&seq); err != nil || seq != given[0] {
					return fmt.Errorf("the standby is at %d: %w", seq, err)
				}
				return nil
			})
			standby.detach()
			if round == 1 {
				primary.kill()
				primary.start()
			}
			for i := range 20 {
				given = append(given, fenceOf(t, s, fmt.Sprint("lost ", i)))
			}
			primary.kill()
			standby.promote()
			for i := range 3 {
				fence := fenceOf(t, standby.at(s), fmt.Sprint("lost ", i))
				higher(t, fence, given)
				given = append(given, fence)
			}
		})
	}
}

// A server that continues from an older copy of its files gives no fence twice: a base backup that is
// started as it is has the same system identifier and the same timeline.
func TestPostgresOldCopy(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	s := c.ordinary()
	given := []uint64{fenceOf(t, s, "before")}
	copied := filepath.Join(filepath.Dir(c.data), "copy")
	asServer(t, filepath.Dir(c.data), "pg_basebackup", "-D", copied, "-d", c.url(), "-c", "fast", "-X", "stream")
	c.kill()
	c.start()
	for i := range 5 {
		given = append(given, fenceOf(t, s, fmt.Sprint("lost ", i)))
	}
	c.kill()
	if err := os.RemoveAll(c.data); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(copied, c.data); err != nil {
		t.Fatal(err)
	}
	c.configure()
	c.start()
	higher(t, fenceOf(t, s, "lost 0"), given)
}

// Rows that pg_dump saved, and that were restored into the same tables of the running server, give no fence
// twice.
func TestPostgresDumped(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"data only", "clean"} {
		t.Run(how, func(t *testing.T) {
			where := freshDatabase(t)
			s := site{kind: "postgres", where: where, space: "s"}
			if err := CreateSpace(t.Context(), where, s.space); err != nil {
				t.Fatal(err)
			}
			given := []uint64{fenceOf(t, s, "before")}
			args := map[string][]string{"data only": {"--data-only", "--table=lockkeeper.*"}, "clean": {"--clean", "--schema=lockkeeper"}}[how]
			dump, err := exec.Command(postgresTool(t, "pg_dump"), append(args, "--inserts", "-d", where)...).Output()
			if err != nil {
				t.Fatal(err)
			}
			for i := range 5 {
				given = append(given, fenceOf(t, s, fmt.Sprint("lost ", i)))
			}
			if how == "data only" {
				conn := foreignTo(t, where)
				defer conn.Close(context.Background())
				if _, err := conn.Exec(t.Context(), `TRUNCATE schema_version, spaces, requests, targets, events, denials, landings, changes, items, pools, turns, workers CASCADE`); err != nil {
					t.Fatal(err)
				}
			}
			load := exec.Command(postgresTool(t, "psql"), "-q", "-v", "ON_ERROR_STOP=1", "-d", where)
			load.Stdin = strings.NewReader(string(dump))
			if out, err := load.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			higher(t, fenceOf(t, s, "lost 0"), given)
		})
	}
}

// A process whose store saw a later number than the server has gives no fence twice, also if nothing shows
// that the server changed.
func TestPostgresForgot(t *testing.T) {
	s := postgresSite(t)
	m := lock.New(s.postgres(t, Options{}), lock.Options{})
	g, err := m.TryAcquire(t.Context(), request("h", "a"))
	if err != nil {
		t.Fatal(err)
	}
	conn := foreign(t)
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), `UPDATE spaces SET seq = seq - 1 WHERE id = $1`, s.space); err != nil {
		t.Fatal(err)
	}
	again, err := m.TryAcquire(t.Context(), request("h", "b"))
	if err != nil {
		t.Fatal(err)
	}
	higher(t, again.Fence, []uint64{g.Fence})
}

// After another server took over, whose clock differs, every lease gets its whole time again.
func TestPostgresLeasesStartAgain(t *testing.T) {
	s := postgresSite(t)
	m := lock.New(s.postgres(t, Options{}), lock.Options{})
	req := request("h", "a")
	req.TTL = time.Minute
	g, err := m.TryAcquire(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	conn := foreign(t)
	defer conn.Close(context.Background())
	// As if the server's clock had jumped ahead by ten minutes.
	if _, err := conn.Exec(t.Context(), `UPDATE requests SET expires = expires - 600000000000, heartbeat = heartbeat - 600000000000 WHERE id = $1`, g.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `UPDATE spaces SET incarnation = 'another server' WHERE id = $1`, s.space); err != nil {
		t.Fatal(err)
	}
	if _, err := m.TryAcquire(t.Context(), request("k", "a")); err == nil {
		t.Error("the grant was given away")
	}
	if _, err := m.Renew(t.Context(), g.ID, g.Token); err != nil {
		t.Errorf("the holder lost it: %v", err)
	}
}

// A server is told from its standby, from the promoted standby, and from a copy.
func TestPostgresSameServer(t *testing.T) {
	t.Parallel()
	primary := newCluster(t)
	s := primary.ordinary()
	standby := primary.standby()
	follower := standby.at(s)
	ask := func(one, other site, want bool) {
		t.Helper()
		same, err := SameServer(t.Context(), one.where, other.where, s.space)
		if same != want || want && err != nil {
			t.Errorf("same %t, %v; want %t", same, err, want)
		}
	}
	ask(s, s, true)
	ask(s, follower, false)
	standby.promote()
	ask(s, follower, false)
	ask(follower, follower, true)
	primary.kill()
	if _, err := SameServer(t.Context(), s.where, follower.where, s.space); err == nil {
		t.Error("a server that is gone answers")
	}
}
