package sqlstore

import (
	"fmt"
	"strings"
	"testing"

	"lockkeeper/lock"
)

// A grant is on the server's disk when TryAcquire returns it. This holds for a single client
// and for a busy space, where other requests are admitted before the flush.
func TestPostgresAdmitIsDurable(t *testing.T) {
	s := postgresSite(t)
	a, b := lock.New(s.postgres(t, Options{}), lock.Options{}), lock.New(s.postgres(t, Options{}), lock.Options{})
	for i := range 30 {
		m := []*lock.Manager{a, a, b}[i%3]
		before := ask[string](t, `SELECT pg_current_wal_insert_lsn()::text`)
		if _, err := m.TryAcquire(t.Context(), request("h", fmt.Sprint("path ", i))); err != nil {
			t.Fatal(err)
		}
		if !ask[bool](t, `SELECT pg_current_wal_flush_lsn() > $1::text::pg_lsn`, before) {
			t.Fatalf("grant %d was told of before it was on disk", i)
		}
	}
}

// The store finds a grant that was made before the server aborted the statement, in this test
// while the server waited for the disk.
func TestPostgresAdmitBrokenOff(t *testing.T) {
	s := site{kind: "postgres", where: freshDatabase(t), space: "s"}
	if err := CreateSpace(t.Context(), s.where, s.space); err != nil {
		t.Fatal(err)
	}
	p := s.postgres(t, Options{})
	mark(t, p, "by another holder")
	var source string
	if err := p.pool.QueryRow(t.Context(), `SELECT pg_get_functiondef('admit'::regproc)`).Scan(&source); err != nil {
		t.Fatal(err)
	}
	const flush = `PERFORM pg_logical_emit_message(true, 'lockkeeper', '')`
	if !strings.Contains(source, flush) {
		t.Fatalf("%s is not in %s", flush, source)
	}
	if _, err := p.pool.Exec(t.Context(), strings.Replace(source, flush, `RAISE EXCEPTION 'broken off' USING ERRCODE = 'query_canceled'`, 1)); err != nil {
		t.Fatal(err)
	}
	m := lock.New(p, lock.Options{})
	g, err := m.TryAcquire(t.Context(), request("h", "a"))
	if err != nil {
		t.Fatal(err)
	}
	if g.Fence != 2 {
		t.Errorf("fence %d, want 2, of the grant that was made", g.Fence)
	}
	if err := g.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
