package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// minimalGate is what a developer would write by hand to have files replaced
// durably and rows about it in these tables: a temporary file beside each, synced
// and renamed over it, the directories synced, and one transaction. It checks
// nothing, fences nothing and keeps no original.
type minimalGate struct {
	conn *sqlite3.Conn
	dir  string
	seq  int64

	begin, commit, count, event, landing, change *sqlite3.Stmt
}

func openMinimalGate(ctx context.Context, path, dir string) (*minimalGate, error) {
	conn, err := sqlite3.OpenContext(ctx, "file:"+path)
	if err != nil {
		return nil, err
	}
	conn.SetInterrupt(context.Background())
	m := &minimalGate{conn: conn, dir: dir}
	err = conn.Exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL`)
	for _, p := range []struct {
		into **sqlite3.Stmt
		sql  string
	}{
		{&m.begin, `BEGIN IMMEDIATE`},
		{&m.commit, `COMMIT`},
		{&m.count, `UPDATE spaces SET seq = ? WHERE key = 1`},
		{&m.event, `INSERT INTO events (space, seq, at, body) VALUES (1, ?, ?, ?)`},
		{&m.landing, `INSERT INTO landings (space, seq, commit_id, grant_id, holder, fence, site, state, at, made, clears, draft, undoes, taker)
 VALUES (1, ?1, printf('%016x', ?1), '7f0c7a39-0000-4000-8000-000000000001', 'bench', 1, 'host:/root/of/tree', 2, ?2, 'null', 'null', '', 0, printf('%016x', ?1))`},
		{&m.change, `INSERT INTO changes (space, landing, n, path, old, new) VALUES (1, ?1, ?2, ?3, ?4, ?4)`},
	} {
		if err == nil {
			*p.into, _, err = conn.PrepareFlags(p.sql, sqlite3.PREPARE_PERSISTENT)
		}
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return m, nil
}

// write replaces files, and syncs them and their directories in parallel.
func (m *minimalGate) write(paths []string, content []byte) error {
	err := inParallel(paths, func(path string) error {
		f, err := os.OpenFile(filepath.Join(m.dir, path+".tmp"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		_, err = f.Write(content)
		return errors.Join(err, f.Sync(), f.Close())
	})
	if err != nil {
		return err
	}
	dirs := map[string]bool{}
	for _, path := range paths {
		path = filepath.Join(m.dir, path)
		if err := os.Rename(path+".tmp", path); err != nil {
			return err
		}
		dirs[filepath.Dir(path)] = true
	}
	list := make([]string, 0, len(dirs))
	for dir := range dirs {
		list = append(list, dir)
	}
	err = inParallel(list, func(dir string) error {
		d, err := os.Open(dir)
		if err != nil {
			return err
		}
		return errors.Join(d.Sync(), d.Close())
	})
	if err != nil {
		return err
	}
	return m.record(paths)
}

func inParallel(list []string, do func(string) error) error {
	if len(list) == 1 {
		return do(list[0])
	}
	var wg sync.WaitGroup
	errs := make([]error, len(list))
	slots := make(chan struct{}, 16)
	for i, item := range list {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = do(item)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// record is the one transaction.
func (m *minimalGate) record(paths []string) error {
	m.seq++
	now := time.Now().UnixNano()
	version := fmt.Sprintf("file 0644 %064x", m.seq)
	body := `{"kind":"landed","actor":{"name":"bench","kind":"holder"},"grant_id":"7f0c7a39-0000-4000-8000-000000000001","holder":"bench","locks":[{"path":"` +
		paths[0] + `","kind":"file","mode":"write"}],"data":{"commit":"0123456789abcdef"}}`
	err := errors.Join(m.begin.Exec(), m.event.BindInt64(1, m.seq), m.event.BindInt64(2, now), m.event.BindText(3, body), m.event.Exec(),
		m.landing.BindInt64(1, m.seq), m.landing.BindInt64(2, now), m.landing.Exec())
	for n, path := range paths {
		err = errors.Join(err, m.change.BindInt64(1, m.seq), m.change.BindInt64(2, int64(n)), m.change.BindText(3, path), m.change.BindText(4, version), m.change.Exec())
	}
	return errors.Join(err, m.count.BindInt64(1, m.seq), m.count.Exec(), m.commit.Exec())
}

func (m *minimalGate) close() error {
	for _, st := range []*sqlite3.Stmt{m.begin, m.commit, m.count, m.event, m.landing, m.change} {
		st.Close()
	}
	return m.conn.Close()
}
