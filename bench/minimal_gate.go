package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ncruces/go-sqlite3"
	"golang.org/x/sync/errgroup"
)

// A minimalGate is what a developer would write by hand to replace files durably and
// record them in these tables. It writes and syncs a temporary file beside each file, renames
// it over the file, syncs the directories and runs one transaction. It checks nothing, fences
// nothing and keeps no original.
type minimalGate struct {
	dir string
	seq int64

	begin, commit, count, event, landing, change *sqlite3.Stmt
}

func openMinimalGate(b *bench, path, dir string) *minimalGate {
	conn := b.connect(path)
	return &minimalGate{
		dir:    dir,
		begin:  b.prepare(conn, `BEGIN IMMEDIATE`),
		commit: b.prepare(conn, `COMMIT`),
		count:  b.prepare(conn, `UPDATE spaces SET seq = ? WHERE key = 1`),
		event:  b.prepare(conn, `INSERT INTO events (space, seq, at, body) VALUES (1, ?, ?, ?)`),
		landing: b.prepare(conn, `INSERT INTO landings (space, seq, commit_id, grant_id, holder, fence, site, state, at, made, clears, draft, undoes, taker)
 VALUES (1, ?1, printf('%016x', ?1), '7f0c7a39-0000-4000-8000-000000000001', 'bench', 1, 'host:/root/of/tree', 2, ?2, 'null', 'null', '', 0, printf('%016x', ?1))`),
		change: b.prepare(conn, `INSERT INTO changes (space, landing, n, path, old, new) VALUES (1, ?1, ?2, ?3, ?4, ?4)`),
	}
}

// write replaces files, and syncs them and their directories in parallel.
func (m *minimalGate) write(paths []string, content []byte) {
	inParallel(paths, func(path string) {
		f := get(os.OpenFile(filepath.Join(m.dir, path+".tmp"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644))
		_, err := f.Write(content)
		check(errors.Join(err, f.Sync(), f.Close()))
	})
	dirs := map[string]bool{}
	for _, path := range paths {
		path = filepath.Join(m.dir, path)
		check(os.Rename(path+".tmp", path))
		dirs[filepath.Dir(path)] = true
	}
	inParallel(slices.Collect(maps.Keys(dirs)), func(dir string) {
		d := get(os.Open(dir))
		check(errors.Join(d.Sync(), d.Close()))
	})
	m.record(paths)
}

func inParallel(list []string, do func(string)) {
	if len(list) == 1 {
		do(list[0])
		return
	}
	var g errgroup.Group
	g.SetLimit(16)
	for _, item := range list {
		g.Go(func() error { return attempt(func() { do(item) }) })
	}
	check(g.Wait())
}

// record runs the transaction.
func (m *minimalGate) record(paths []string) {
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
	check(errors.Join(err, m.count.BindInt64(1, m.seq), m.count.Exec(), m.commit.Exec()))
}
