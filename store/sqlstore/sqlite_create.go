package sqlstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/store"
)

// CreateSQLite creates a database with one empty space. It refuses a path that exists. It also
// refuses a path beside files that would become part of the database, such as an earlier
// write-ahead log or a link.
func CreateSQLite(ctx context.Context, path, space string) error {
	if err := refuseNetworkDisk(filepath.Dir(path)); err != nil {
		return err
	}
	for _, there := range []string{path, path + "-wal", path + "-journal", path + "-bells"} {
		if _, err := os.Lstat(there); !errors.Is(err, fs.ErrNotExist) {
			return createProblem(path, &fs.PathError{Op: "create", Path: there, Err: errors.Join(fs.ErrExist, err)})
		}
	}
	// The database is created under a temporary name and then renamed. A process that dies
	// halfway leaves no partial database, and no process can open one.
	draft := path + "-new-" + rand.Text()
	defer func() {
		for _, rest := range []string{"", "-wal", "-shm", "-journal"} {
			os.Remove(draft + rest)
		}
	}()
	if err := makeSQLite(ctx, draft, space); err != nil {
		return createProblem(path, err)
	}
	turn, err := reserveWriteTurn(path + "-turn")
	if err != nil {
		return createProblem(path, err)
	}
	defer turn.Close()
	// A hard link would leave two names if this process dies before it removes the first.
	if err := unix.Renameat2(unix.AT_FDCWD, draft, unix.AT_FDCWD, path, unix.RENAME_NOREPLACE); err != nil {
		return createProblem(path, &os.LinkError{Op: "rename", Old: draft, New: path, Err: err})
	}
	return syncDirectory(filepath.Dir(path))
}

func createProblem(path string, err error) error {
	if lockkeeper.CodeOf(err) == lockkeeper.CodeStore {
		return err
	}
	return &lockkeeper.StoreError{Store: path, Reason: "cannot be created", Err: err, Next: "choose another path, or remove the file there if no process uses it"}
}

// makeSQLite creates a database that is complete in its one file, on disk.
func makeSQLite(ctx context.Context, path, space string) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	id, err := incarnation(f)
	if err != nil {
		return err
	}
	s := &SQLite{path: path, space: space, file: f}
	sess, err := s.connect(ctx)
	if err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return sess.conn.Exec(fmt.Sprintf(`PRAGMA application_id = %d`, applicationID)) },
		func() error { return migrateSQLite(sess) },
		func() error {
			return sess.exec(`INSERT INTO spaces (id, seq, incarnation, boot, created_at) VALUES ($1, 0, $2, '', $3)`, space, id, time.Now().UnixNano())
		},
		s.guardCompanions,
		func() error { return sess.conn.Exec(`PRAGMA journal_mode = WAL`) }, // the file keeps this mode
	} {
		if err = step(); err != nil {
			break
		}
	}
	if err = errors.Join(s.explain(err), sess.close()); err != nil {
		return err
	}
	return f.Sync()
}

func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// RestoreSQLite accepts a database that was copied, restored from a backup or has lost its
// latest writes. Numbers continue in a new epoch, above every number ever given.
func RestoreSQLite(ctx context.Context, path, space string, opt Options) error {
	made := makeWriteTurn(path + "-turn")
	if made != nil && !errors.Is(made, fs.ErrExist) {
		return openProblem(path+"-turn", made)
	}
	s, err := openSQLite(ctx, &SQLite{path: path, space: space, opt: opt, restoring: true})
	if err != nil {
		return err
	}
	now, err := incarnation(s.file)
	if err == nil {
		err = s.Update(ctx, func(t store.Tx) error {
			given, err := s.writeTurn.lastNumber()
			if err != nil {
				return err
			}
			x := t.(*tx)
			if made == nil { // the recorded last number was lost with the old file
				given = max(given, x.seq+1)
			}
			return x.newEpoch(now, given, false)
		})
	}
	return errors.Join(err, s.Close())
}
