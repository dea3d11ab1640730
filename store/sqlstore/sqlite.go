package sqlstore

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"
	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/internal/machine/boot"
	"lockkeeper/store"
)

//go:embed schema
var schemas embed.FS

// Options configures a store. The zero value is ready to use.
type Options struct {
	// Clock replaces the store's own clock, in tests.
	Clock func() store.Moment
	// Boot replaces the stamp of the host's boot, in tests. Only SQLite uses it.
	Boot string
	// Mark is a file outside the directory of the database. An SQLite store also records the
	// last number there, so that restoring the directory does not reset it.
	Mark *os.File
	// Busy bounds how long a transaction waits for its turn to write. The default is 10 s.
	Busy time.Duration
	// OneConnection makes SQLite read through the connection that writes, which saves opening
	// another one. It is for a process that makes one short transaction after the other.
	OneConnection bool
}

// applicationID marks our database files ("LKpr").
const applicationID = 0x4c4b7072

// SQLite keeps one space in one database file.
type SQLite struct {
	path      string
	space     string
	opt       Options
	file      *os.File // the opened database; path must still lead to it
	opened    unix.Stat_t
	writeTurn *writeTurn

	listening openListeners

	locksCache locksCache
	listCache  listCache

	writing sync.Mutex
	writer  *sqliteSession
	key     int64

	restoring bool // accept a database that lost numbers, to start a new epoch

	reading sync.Mutex
	reader  *sqliteSession // opened when first needed
}

// OpenSQLite opens the database of a space. It creates nothing and refuses a file that is
// missing, damaged, newer or of another program.
func OpenSQLite(ctx context.Context, path, space string, opt Options) (*SQLite, error) {
	return openSQLite(ctx, &SQLite{path: path, space: space, opt: opt})
}

func openSQLite(ctx context.Context, s *SQLite) (_ *SQLite, err error) {
	if s.opt.Clock == nil {
		s.opt.Clock = monotonic
	}
	if s.opt.Busy <= 0 {
		s.opt.Busy = 10 * time.Second
	}
	if s.opt.Boot == "" {
		if s.opt.Boot, err = boot.Stamp(); err != nil {
			return nil, err
		}
	}
	if err := refuseNetworkDisk(filepath.Dir(s.path)); err != nil {
		return nil, err
	}
	if err := refuseShiftedTime(); err != nil {
		return nil, err
	}
	if s.file, err = os.OpenFile(s.path, os.O_RDWR, 0); err != nil {
		return nil, openProblem(s.path, err)
	}
	if err = unix.Fstat(int(s.file.Fd()), &s.opened); err != nil {
		s.file.Close()
		return nil, openProblem(s.path, err)
	}
	if err := s.open(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func openProblem(path string, err error) error {
	p := &lockkeeper.StoreError{Store: path, Reason: "cannot be opened", Err: err, Next: "check the path and its permissions"}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.Reason, p.Next = "the lock database is missing", "restore it; if the space is no longer in use, `lockkeeper init --new-world`"
	case errors.Is(err, fs.ErrPermission):
		p.Reason = "you may not read and write it"
	case isReadOnlyDisk(err):
		p.Reason, p.Next = "its disk is read-only", "make it writable, or keep the database elsewhere with --store"
	}
	return p
}

func (s *SQLite) open(ctx context.Context) (err error) {
	if s.writer, err = s.connect(ctx); err != nil {
		return err
	}
	if err := s.checkVersion(); err != nil {
		return err
	}
	if s.writeTurn, err = openWriteTurn(s.path + "-turn"); errors.Is(err, fs.ErrNotExist) {
		return &lockkeeper.StoreError{Store: s.path, Reason: "the file beside it that remembers the last change is missing, so the latest changes may be missing too", Next: restoredNext}
	} else if err != nil {
		return openProblem(s.path+"-turn", err)
	}
	s.writeTurn.copy = s.opt.Mark
	if err := s.checkNotReplaced(); err != nil {
		return err
	}
	var was, stamp string
	err = s.writer.query(`SELECT key, incarnation, boot FROM spaces WHERE id = $1`, []any{s.space},
		func(scan func(...any) error) error { return scan(&s.key, &was, &stamp) })
	if err != nil {
		return s.explain(err)
	}
	if s.key == 0 {
		return &lockkeeper.StoreError{Store: s.path, Reason: "it belongs to a different space than " + s.space,
			Next: "restore the database that was here, or stop all holders and run `lockkeeper init --new-world`"}
	}
	if err := s.guardCompanions(); err != nil { // another process may just have removed these files on closing
		return err
	}
	now, err := incarnation(s.file)
	if err != nil || s.restoring {
		return err
	}
	if now != was {
		return &lockkeeper.StoreError{Store: s.path, Reason: "it is a copy, or was restored from a backup: locks acquired since then would be missing",
			Next: restoredNext}
	}
	if !boot.Same(stamp, s.opt.Boot) { // restart the leases now, so that readers see them, too
		return s.Update(ctx, func(store.Tx) error { return nil })
	}
	return nil
}

// connect opens another connection. It creates only the files that SQLite keeps beside a
// database of ours, and leaves the database of another program unchanged.
func (s *SQLite) connect(ctx context.Context) (*sqliteSession, error) {
	if ours, err := s.isOurs(); err != nil {
		return nil, err
	} else if ours {
		if err := s.guardCompanions(); err != nil {
			return nil, err
		}
	}
	registerFileSystem()
	name := (&url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(s.path), RawQuery: "mode=rw&vfs=" + fileSystem}).String()
	conn, err := sqlite3.OpenContext(ctx, name)
	if err != nil {
		return nil, s.explain(err)
	}
	conn.SetInterrupt(context.Background())
	sess := newSQLiteSession(conn)
	if err := conn.BusyTimeout(s.opt.Busy); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	// By default, the last connection of a short-lived command checkpoints on closing. Close
	// decides about that instead.
	if _, err := conn.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, true); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	conn.WALHook(s.shortenLog)
	if err := conn.Exec(`PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF`); err != nil {
		return nil, errors.Join(s.explain(err), conn.Close())
	}
	return sess, nil
}

func (s *SQLite) Space() string { return s.space }

func (s *SQLite) Close() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.reading.Lock()
	defer s.reading.Unlock()
	errs := []error{s.listening.close(), s.tidyLog()}
	for _, sess := range []*sqliteSession{s.reader, s.writer} {
		if sess != nil {
			errs = append(errs, sess.close())
		}
	}
	s.writer, s.reader = nil, nil
	if s.writeTurn != nil {
		errs = append(errs, s.writeTurn.close())
	}
	if err := s.file.Close(); !errors.Is(err, fs.ErrClosed) { // closing twice is harmless
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (s *sqliteSession) close() error {
	for _, st := range s.stmts {
		st.Close()
	}
	for _, st := range s.listed {
		st.Close()
	}
	return s.conn.Close()
}

func (s *SQLite) Update(ctx context.Context, fn func(store.Tx) error) error {
	woken, err := s.update(ctx, fn)
	if err != nil {
		return err
	}
	for _, id := range woken {
		wakeListeners(s.wakeDir(), id)
	}
	return nil
}

func (s *SQLite) update(ctx context.Context, fn func(store.Tx) error) (woken []string, err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.writer == nil {
		return nil, &lockkeeper.StoreError{Store: s.path, Reason: "closed"}
	}
	if err := s.writeTurn.acquire(ctx, s.opt.Busy); err != nil {
		return nil, s.explain(err)
	}
	defer s.writeTurn.release()
	if err := s.checkNotReplaced(); err != nil {
		return nil, err
	}
	if err := s.writer.exec(`BEGIN IMMEDIATE`); err != nil {
		return nil, s.explain(err)
	}
	done := false
	defer func() {
		if !done { // fn failed or panicked
			if rb := s.writer.exec(`ROLLBACK`); rb != nil && !s.writer.conn.GetAutocommit() {
				err = errors.Join(err, rb)
			}
		}
	}()
	t, err := s.begin()
	if err != nil {
		return nil, s.explain(err)
	}
	if err := fn(t); err != nil {
		return nil, s.explain(err)
	}
	if err := t.saveCounters(); err != nil {
		return nil, s.explain(err)
	}
	if err := s.writer.exec(`COMMIT`); err != nil {
		return nil, s.explain(err)
	}
	done = true
	if t.seq != t.began.seq {
		s.writeTurn.setLastNumber(t.seq)
	}
	return t.woken, s.checkNotReplaced()
}

// begin reads the space's row. After a reboot of the host it also restarts the leases: waiting
// requests are removed, and each confirmed grant gets its whole lease again, because the length
// of the outage is unknown.
func (s *SQLite) begin() (*tx, error) {
	t := &tx{session: s.writer, key: s.key, space: s.space, locksCache: &s.locksCache, listCache: &s.listCache, now: s.opt.Clock()}
	seq, parked, stamp := int64(-1), int64(0), ""
	err := t.query(`SELECT seq, parked, boot FROM spaces WHERE key = $1`, []any{s.key},
		func(scan func(...any) error) error { return scan(&seq, &parked, &stamp) })
	if err != nil {
		return nil, err
	}
	if seq < 0 {
		return nil, &lockkeeper.StoreError{Store: s.path, Reason: "its space " + s.space + " is gone", Next: restoredNext}
	}
	t.setCounters(seq, parked)
	if err := s.checkLastNumber(t.seq); err != nil || boot.Same(stamp, s.opt.Boot) {
		return t, err
	}
	err = t.exec(`UPDATE requests SET heartbeat = $1, expires = CASE WHEN expires = 0 THEN 0 WHEN state >= $2 THEN $1 + ttl ELSE $1 END,
 expires_at = CASE WHEN expires = 0 THEN 0 WHEN state >= $2 THEN $3 + ttl ELSE $3 END`,
		int64(t.now.Lease), int64(store.StateHeld), fromTime(t.now.Wall))
	if err == nil {
		err = t.restartQueue(0) // no worker outlives the host
	}
	if err == nil {
		err = t.exec(`UPDATE spaces SET boot = $2 WHERE key = $1`, s.key, s.opt.Boot)
	}
	return t, err
}

func (s *SQLite) View(ctx context.Context, fn func(store.Reader) error) (err error) {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	reads := s.opt.OneConnection && s.writing.TryLock() // in an Update of this process it fails
	if reads {
		defer s.writing.Unlock()
	} else {
		s.reading.Lock()
		defer s.reading.Unlock()
	}
	if s.writer == nil {
		return &lockkeeper.StoreError{Store: s.path, Reason: "closed"}
	}
	if err := s.checkNotReplaced(); err != nil {
		return err
	}
	sess := s.writer
	if !reads {
		if s.reader == nil {
			if s.reader, err = s.connect(ctx); err != nil {
				return err
			}
		}
		sess = s.reader
	}
	if err := sess.exec(`BEGIN`); err != nil {
		return s.explain(err)
	}
	defer func() {
		if rb := sess.exec(`ROLLBACK`); rb != nil && err == nil {
			err = s.explain(rb)
		}
	}()
	return s.explain(fn(s.snapshot(sess)))
}

// Peek implements store.Peeker. It reads through the writer's connection, whose page cache is
// still valid after its last transaction. The reader's cache is invalid after every change.
func (s *SQLite) Peek(ctx context.Context, fn func(store.Reader) error) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.writer == nil {
		return &lockkeeper.StoreError{Store: s.path, Reason: "closed"}
	}
	if err := s.checkNotReplaced(); err != nil {
		return err
	}
	return s.explain(fn(s.snapshot(s.writer)))
}

// snapshot returns a reader of the current state.
func (s *SQLite) snapshot(sess *sqliteSession) *tx {
	return &tx{session: sess, key: s.key, space: s.space, locksCache: &s.locksCache, listCache: &s.listCache, now: s.opt.Clock()}
}
