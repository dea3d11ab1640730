package sqlstore

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// companions lists the suffixes of the files that SQLite keeps beside a database in use. They
// contain the same data as the database, but the driver creates them with permissions that only
// the umask restricts.
var companions = []string{"-wal", "-shm"}

// guardCompanions gives these files the permissions of the database, which only its owner can
// read. It creates missing files, so that they never have other permissions. SQLite treats an
// empty file as missing.
func (s *SQLite) guardCompanions() error {
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	for _, end := range companions {
		if err := guardFile(s.path+end, info.Mode().Perm()); err != nil {
			return openProblem(s.path+end, err)
		}
	}
	return nil
}

func guardFile(path string, perm fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, perm)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Mode().Perm() == perm {
		return err
	}
	if err := f.Chmod(perm); err != nil && !errors.Is(err, fs.ErrPermission) { // the file belongs to another user of the database
		return err
	}
	return nil
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
