package session

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/internal/machine/boot"
	"lockkeeper/internal/machine/filelock"
)

const draftEnd = ".new" // after the name of a record file

// writeRecord replaces a record file: it writes the draft beside it and exchanges the two. So
// each session has two files that stay. Making and removing a file for every call is slow, because
// disks avoid inodes that were in use a moment ago. writeRecord does not sync, because a machine
// crash ends the session as well.
//
// A reader may still read the draft, which was the record before. It has a lock on it, and then
// writeRecord makes a new draft.
func writeRecord(file string, text []byte) (err error) {
	draft, err := openDraft(file + draftEnd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, draft.Close()) }()
	if _, err := draft.WriteAt(text, 0); err != nil {
		return err
	}
	if err := draft.Truncate(int64(len(text))); err != nil {
		return err
	}
	err = unix.Renameat2(unix.AT_FDCWD, draft.Name(), unix.AT_FDCWD, file, unix.RENAME_EXCHANGE)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // the first record, or a disk that cannot exchange
		return os.Rename(draft.Name(), file)
	}
	return err
}

// openDraft opens and locks a draft that no other process reads.
func openDraft(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	free, err := filelock.Try(f)
	if err == nil && free {
		return f, nil
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Remove(name)
	}
	if err != nil {
		return nil, err
	}
	return os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
}

// readRecord reads a session's record, or returns the zero record if there is none.
func readRecord(file string) (r record, err error) {
	text, err := readRecordFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil && leftByCrash(file) {
		return record{}, nil
	}
	if err != nil {
		return record{}, &lockkeeper.StoreError{Store: file, Reason: "cannot read the record of this session", Err: err, Next: "remove the file: the session starts with an empty record"}
	}
	return r, nil
}

// readRecordFile reads a file that writeRecord may replace meanwhile, under a lock that keeps
// writeRecord from writing into it.
func readRecordFile(file string) ([]byte, error) {
	for {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		text, current, err := readIfCurrent(f, file)
		if err = errors.Join(err, f.Close()); err != nil || current {
			return text, err
		}
	}
}

// readIfCurrent reads a file, unless another one has its name by now.
func readIfCurrent(f *os.File, name string) (text []byte, current bool, err error) {
	if err := filelock.Share(f); err != nil {
		return nil, false, &os.PathError{Op: "flock", Path: name, Err: err}
	}
	opened, err := f.Stat()
	if err != nil {
		return nil, false, err
	}
	if there, err := os.Stat(name); err != nil || !os.SameFile(opened, there) {
		return nil, false, nil
	}
	text = make([]byte, opened.Size())
	n, err := io.ReadFull(f, text)
	return text[:n], true, err
}

// leftByCrash reports whether a file was last written before the machine started.
func leftByCrash(file string) bool {
	info, err := os.Stat(file)
	if err != nil {
		return false
	}
	started, err := boot.Started()
	return err == nil && info.ModTime().Before(started)
}
