package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"lockkeeper"
)

// RealDir returns the canonical name of an existing directory: without links and, if a directory is
// mounted in several places, the same name for all of them. So a root has one set of locks,
// whichever path it is opened by.
func RealDir(dir string) (string, error) {
	path, err := filepath.Abs(dir)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	var info fs.FileInfo
	if err == nil {
		info, err = os.Stat(path)
	}
	if err == nil && !info.IsDir() {
		err = errors.New("not a directory")
	}
	if err != nil {
		return "", &lockkeeper.InputError{Field: "directory", Value: dir, Reason: Reason(err), Next: "give a directory that exists and that you may read"}
	}
	if names := MountedNames(path); len(names) > 0 {
		path = names[0]
	}
	return path, nil
}

// Reason returns the text of a file system error without the path, which the caller adds.
func Reason(err error) string {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		err = at.Err
	}
	return err.Error()
}
