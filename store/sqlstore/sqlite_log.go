package sqlstore

import (
	"os"

	"github.com/ncruces/go-sqlite3"
)

// logPages is how long the log of writes gets before its pages are copied into the
// database, as by SQLite itself.
const logPages = 1000

// shortenLog copies the log into the database once it is long. On a disk that is nearly full
// it does so only if the whole log fits: a copy that breaks off uses up the last free space
// and leaves the log as long as it was, so that not even a release could be written. A log
// that is not shortened grows, and the next commit tries again. Failures are left to the
// next use of the database to report, as SQLite does.
func (s *SQLite) shortenLog(conn *sqlite3.Conn, schema string, pages int) error {
	if pages >= logPages && s.fits(conn) {
		conn.WALCheckpoint(schema, sqlite3.CHECKPOINT_PASSIVE)
	}
	return nil
}

// fits reports whether the disk has room for what the database grows by when the log is
// copied into it.
func (s *SQLite) fits(conn *sqlite3.Conn) bool {
	info, err := os.Stat(s.path)
	if err != nil {
		return false
	}
	var count, size int64
	for text, n := range map[string]*int64{`PRAGMA page_count`: &count, `PRAGMA page_size`: &size} {
		st, _, err := conn.Prepare(text)
		if err != nil {
			return false
		}
		if st.Step() {
			*n = st.ColumnInt64(0)
		}
		if st.Close() != nil {
			return false
		}
	}
	return freeSpace(s.path) > uint64(max(0, count*size-info.Size()))
}

// logKept is how large the log of writes may be that the last process leaves behind. The
// next one reads all of it again, and once it is past SQLite's own limit each commit of a
// process that is alone would copy all of it into the database.
const logKept = 256 << 10

// tidyLog lets the writer's connection, the last to be closed, copy a large log into the
// database and remove it, if no other process has the database open.
func (s *SQLite) tidyLog() error {
	log, err := os.Stat(s.path + "-wal")
	if err != nil || log.Size() < logKept || s.writer == nil || !s.fits(s.writer.conn) {
		return nil // without a log there is nothing to tidy, and what is wrong with it the next use will say
	}
	_, err = s.writer.conn.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, false)
	return err
}
