package sqlstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/ncruces/go-sqlite3"
	"golang.org/x/sys/unix"

	"lockkeeper"
)

// checkNotReplaced returns an error if the path no longer leads to the opened file. A lock
// acquired in the old file would not be seen in the new one.
func (s *SQLite) checkNotReplaced() error {
	var now unix.Stat_t
	err := unix.Stat(s.path, &now)
	if err == nil && now.Dev == s.opened.Dev && now.Ino == s.opened.Ino {
		return s.checkOneName(&now)
	}
	reason := "the lock database was replaced by another file"
	if errors.Is(err, fs.ErrNotExist) {
		reason = "the lock database was removed"
	} else if err != nil {
		return openProblem(s.path, &fs.PathError{Op: "stat", Path: s.path, Err: err})
	}
	return &lockkeeper.StoreError{Store: s.path, Reason: reason + " while it was in use",
		Next: "stop every holder here, then restore the database or run `lockkeeper init --new-world`"}
}

// checkOneName refuses a database with several hard links, because under another name it would
// have another write-ahead log.
func (s *SQLite) checkOneName(st *unix.Stat_t) error {
	if st.Nlink == 1 {
		return nil
	}
	return &lockkeeper.StoreError{Store: s.path, Reason: fmt.Sprintf("the lock database has %d names (hard links)", st.Nlink), Next: "remove the others"}
}

const restoredNext = "stop every holder here, then `lockkeeper init --restored`"

// checkLastNumber refuses a database whose last number is below one it has given. Such a
// database was overwritten with a backup, or its write-ahead log was lost.
func (s *SQLite) checkLastNumber(seq uint64) error {
	given, err := s.writeTurn.lastNumber()
	if err != nil || given <= seq || s.restoring {
		return err
	}
	return &lockkeeper.StoreError{Store: s.path, Next: restoredNext,
		Reason: fmt.Sprintf("it contains changes up to number %d, but %d were made: it was overwritten with a backup, or its -wal file was lost", seq, given)}
}

// checkVersion refuses a database of another program or of a newer format, and migrates an
// older one.
func (s *SQLite) checkVersion() error {
	var app, version int64
	read := func(sql string, into *int64) error {
		return s.writer.query(sql, nil, func(scan func(...any) error) error { return scan(into) })
	}
	if err := errors.Join(read(`PRAGMA application_id`, &app), read(`PRAGMA user_version`, &version)); err != nil {
		return s.explain(err)
	}
	if app != applicationID {
		return &lockkeeper.StoreError{Store: s.path, Reason: "this is not a Lockkeeper database", Next: "check the path given as store"}
	}
	known, err := migrations("sqlite")
	if err != nil {
		return err
	}
	switch {
	case version > int64(len(known)):
		return &lockkeeper.StoreError{Store: s.path, Reason: fmt.Sprintf("its format %d is newer than this program knows (%d)", version, len(known)),
			Next: "use the newer lockkeeper everywhere"}
	case version < int64(len(known)):
		return s.explain(migrateSQLite(s.writer))
	}
	return nil
}

// migrations returns the schema steps of a dialect, oldest first.
func migrations(dialect string) ([]string, error) {
	entries, err := schemas.ReadDir("schema/" + dialect)
	if err != nil {
		return nil, err
	}
	steps := make([]string, len(entries))
	for i, e := range entries {
		if n, _ := strconv.Atoi(strings.TrimSuffix(e.Name(), ".sql")); n != i+1 {
			return nil, fmt.Errorf("schema step %s is out of order", e.Name())
		}
		text, err := schemas.ReadFile("schema/" + dialect + "/" + e.Name())
		if err != nil {
			return nil, err
		}
		steps[i] = string(text)
	}
	return steps, nil
}

// migrateSQLite applies the missing schema steps. Each step runs in its own transaction, which
// also records it.
func migrateSQLite(s *sqliteSession) error {
	steps, err := migrations("sqlite")
	if err != nil {
		return err
	}
	for i := range steps {
		if err := s.migrate(i+1, steps[i]); err != nil {
			return fmt.Errorf("migrating to format %d: %w", i+1, err)
		}
	}
	return nil
}

func (s *sqliteSession) migrate(version int, step string) (err error) {
	tx, err := s.conn.BeginExclusive()
	if err != nil {
		return err
	}
	defer tx.End(&err)
	var current int64
	err = s.query(`PRAGMA user_version`, nil, func(scan func(...any) error) error { return scan(&current) })
	if err != nil || current >= int64(version) { // another process has already applied the step
		return err
	}
	return s.conn.Exec(step + fmt.Sprintf(";\nPRAGMA user_version = %d", version))
}

// explain turns errors of SQLite and the operating system into errors for a person. It returns
// our own errors unchanged.
func (s *SQLite) explain(err error) error {
	var ours interface{ Code() lockkeeper.Code }
	if err == nil || errors.As(err, &ours) {
		return err
	}
	p := &lockkeeper.StoreError{Store: s.path, Err: err}
	switch {
	case errors.Is(err, sqlite3.CORRUPT), errors.Is(err, sqlite3.NOTADB):
		p.Reason, p.Next = "the lock database is damaged", "stop every holder, move the file aside, and run `lockkeeper init --new-world`; the file holds the audit trail"
	case errors.Is(err, sqlite3.BUSY), errors.Is(err, errNoTurn):
		p.Reason, p.Next = "the lock database is busy: "+s.writeTurn.holder(), "inspect that process; a write should take only milliseconds"
	case errors.Is(err, sqlite3.READONLY), isReadOnlyDisk(err):
		p.Reason, p.Next = "the lock database cannot be written", "check the permissions and whether the disk is read-only"
	case errors.Is(err, sqlite3.FULL), errors.Is(err, syscall.ENOSPC), errors.Is(err, sqlite3.IOERR) && diskFull(s.path):
		p.Reason, p.Next = "the disk is full", "free space; no lock was changed"
	case errors.Is(err, sqlite3.CANTOPEN):
		p.Reason, p.Next = "the lock database cannot be opened", "check the path and its permissions"
	case errors.Is(err, sqlite3.IOERR):
		p.Reason, p.Next = "the disk reported an error", "check the disk; no lock was changed unless the audit trail says so"
	default:
		return err
	}
	return p
}

func isReadOnlyDisk(err error) bool { return errors.Is(err, syscall.EROFS) }

// companions lists the suffixes of the files that SQLite keeps beside a database in use. They
// contain the same data as the database, but the driver creates them with permissions that only
// the umask restricts.
var companions = []string{"-wal", "-shm"}

// guardCompanions gives the companions of a database the permissions of the database, which only
// its owner can read. It creates missing files, so that they never have other permissions, and
// syncs their directory, because a log whose name is lost is lost with its commits. SQLite treats an
// empty file as missing.
func (s *SQLite) guardCompanions() error {
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	created := false
	for _, end := range companions {
		missing, err := guardFile(s.path+end, info.Mode().Perm())
		if err != nil {
			return openProblem(s.path+end, err)
		}
		created = created || missing
	}
	if !created {
		return nil
	}
	return syncDirectory(filepath.Dir(s.path))
}

// guardFile sets the permissions of a companion. It returns whether the file was missing.
func guardFile(path string, perm fs.FileMode) (missing bool, err error) {
	const how = os.O_RDWR | unix.O_NOFOLLOW | unix.O_NONBLOCK
	f, err := os.OpenFile(path, how, 0)
	if missing = errors.Is(err, fs.ErrNotExist); missing {
		f, err = os.OpenFile(path, how|os.O_CREATE, perm)
	}
	if err != nil {
		return missing, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Mode().Perm() == perm {
		return missing, err
	}
	if err := f.Chmod(perm); err != nil && !errors.Is(err, fs.ErrPermission) { // the file belongs to another user of the database
		return missing, err
	}
	return missing, nil
}

// isOurs reports whether the database has our application id. It reads the file directly,
// because SQLite would create files beside the database of another program.
func (s *SQLite) isOurs() (bool, error) {
	const applicationIDAt = 68 // offset in the file header
	var id [4]byte
	if _, err := s.file.ReadAt(id[:], applicationIDAt); err != nil && !errors.Is(err, io.EOF) {
		return false, openProblem(s.path, err)
	}
	return binary.BigEndian.Uint32(id[:]) == applicationID, nil
}
