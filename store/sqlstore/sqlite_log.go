package sqlstore

import (
	"os"

	"github.com/ncruces/go-sqlite3"
)

// logPages is the length at which the write-ahead log is copied into the database. It is
// SQLite's default.
const logPages = 1000

// shortenLog checkpoints the log once it is long. If the disk is nearly full, it does so only
// if the whole log fits. A checkpoint that breaks off would use up the last free space without
// shortening the log, and not even a release could be written. If the log is not shortened, the
// next commit tries again. As in SQLite, the next use of the database reports any error.
func (s *SQLite) shortenLog(conn *sqlite3.Conn, schema string, pages int) error {
	if pages >= logPages && s.fits(conn) {
		conn.WALCheckpoint(schema, sqlite3.CHECKPOINT_PASSIVE)
	}
	return nil
}

// fits reports whether the disk has room for the growth of the database in a checkpoint.
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

// logKept is the largest log that the last process may leave behind. The next process reads all
// of it. Once the log is past SQLite's own limit, each commit of a process that is alone would
// checkpoint it.
const logKept = 256 << 10

// tidyLog lets the writer's connection checkpoint and remove a large log when it closes, if no
// other process has the database open.
func (s *SQLite) tidyLog() error {
	log, err := os.Stat(s.path + "-wal")
	if err != nil || log.Size() < logKept || s.writer == nil || !s.fits(s.writer.conn) {
		return nil // the next use of the database reports any problem with the log
	}
	_, err = s.writer.conn.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, false)
	return err
}
