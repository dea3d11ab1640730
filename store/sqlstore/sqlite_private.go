package sqlstore

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// companions are the files that SQLite keeps beside a database while it is in use. They
// have the same content as the database, and the driver makes them readable by everybody
// whom the umask does not exclude.
var companions = []string{"-wal", "-shm"}

// guardCompanions gives the files beside the database the permissions of the database,
// which is made for its owner alone. It makes those that are missing, so that they never
// have others; SQLite takes an empty one for none.
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
	if err := f.Chmod(perm); err != nil && !errors.Is(err, fs.ErrPermission) { // another user's, who shares the database
		return err
	}
	return nil
}

// isOurs reports whether the database has our mark, without asking SQLite, which would
// make files beside another user's database.
func (s *SQLite) isOurs() (bool, error) {
	const applicationIDAt = 68 // in the header of the file
	var id [4]byte
	if _, err := s.file.ReadAt(id[:], applicationIDAt); err != nil && !errors.Is(err, io.EOF) {
		return false, openProblem(s.path, err)
	}
	return binary.BigEndian.Uint32(id[:]) == applicationID, nil
}
