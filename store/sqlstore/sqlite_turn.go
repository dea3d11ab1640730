package sqlstore

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper/internal/machine/filelock"
)

var errNoTurn = errors.New("timed out waiting for the turn to write")

// A writeTurn queues the processes that write to one database. SQLite alone lets them race and
// sleep, so that a process may lose repeatedly. The turn only provides fairness: BEGIN IMMEDIATE
// provides exclusion.
//
// It consists of two locks on one file, an entry lock and the turn. A writer holds the entry
// lock while it waits for the turn, and releases it once it has the turn. A single lock would
// go to the process that asks at the right moment, most often the process that just
// released it.
//
// The file also records the last number given. This detects a database that went back in time,
// because a backup was copied over it or its write-ahead log was lost.
type writeTurn struct {
	mu   sync.Mutex
	file *os.File
	// copy is a second file that records the last number. It may be nil.
	copy    *os.File
	pending chan error // an abandoned wait that has not ended, or nil
	wanted  bool       // a writer waits for pending
	closed  bool
}

// openWriteTurn opens the file that was created with the database. It does not create a missing
// file, because the last number would be lost. It does not follow links.
func openWriteTurn(path string) (*writeTurn, error) {
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &writeTurn{file: f}, nil
}

func makeWriteTurn(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// reserveWriteTurn creates the file for a database that is about to be created, and locks it
// against other creators until it is closed. A file left by a dead process is empty and not
// locked, and can be reserved.
func reserveWriteTurn(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		if free, failed := filelock.Try(f); !free || failed != nil || !info.Mode().IsRegular() || info.Size() > 0 {
			err = &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// acquire waits for the turn up to limit. The caller serializes calls.
func (t *writeTurn) acquire(ctx context.Context, limit time.Duration) error {
	t.mu.Lock()
	if t.pending == nil {
		acquired, err := t.lockBoth(false)
		if acquired || err != nil {
			t.mu.Unlock()
			return err
		}
		t.pending = make(chan error, 1)
		go t.wait(t.pending)
	}
	t.wanted = true
	pending := t.pending
	t.mu.Unlock()

	timer := time.NewTimer(limit)
	defer timer.Stop()
	var why error
	select {
	case err := <-pending:
		return err
	case <-timer.C:
		why = errNoTurn
	case <-ctx.Done():
		why = context.Cause(ctx)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wanted = false
	select {
	case err := <-pending: // the turn came just now
		if err == nil {
			err = filelock.Unlock(t.file)
		}
		return errors.Join(why, err)
	default:
		return why
	}
}

// wait blocks in the kernel and cannot be interrupted. If no writer wants the turn when it
// comes, wait releases it at once.
func (t *writeTurn) wait(pending chan error) {
	_, err := t.lockBoth(true)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending = nil
	if t.wanted {
		t.wanted = false
		pending <- err
		return
	}
	if err == nil {
		filelock.Unlock(t.file)
	}
	if t.closed {
		t.file.Close()
	}
}

// lastNumber returns the last recorded number, or 0 if there is none.
func (t *writeTurn) lastNumber() (last uint64, err error) {
	for _, f := range []*os.File{t.file, t.copy} {
		var b [8]byte
		if f == nil {
			continue
		}
		n, err := f.ReadAt(b[:], 0)
		if n < len(b) && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if n == len(b) {
			last = max(last, binary.BigEndian.Uint64(b[:]))
		}
	}
	return last, nil
}

// setLastNumber records a committed number. The record is never ahead of the database. It may
// be behind after a power loss or on a full disk.
func (t *writeTurn) setLastNumber(seq uint64) {
	for _, f := range []*os.File{t.file, t.copy} {
		if f != nil {
			f.WriteAt(binary.BigEndian.AppendUint64(nil, seq), 0)
		}
	}
}

func (t *writeTurn) release() { filelock.Unlock(t.file) }

func (t *writeTurn) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.pending != nil {
		t.closed = true
		return nil // wait closes the file
	}
	t.closed = true
	return t.file.Close()
}

// lockBoth acquires the entry lock and then the turn. Unless it waits for them, it returns false
// if another process has one of them.
func (t *writeTurn) lockBoth(wait bool) (acquired bool, err error) {
	how := unix.F_OFD_SETLK
	if wait {
		how = unix.F_OFD_SETLKW
	}
	err = t.lockEntry(how, unix.F_WRLCK)
	switch {
	case !wait && errors.Is(err, syscall.EAGAIN):
		return false, nil
	case err != nil:
		return false, err
	case wait:
		acquired, err = true, filelock.Wait(t.file)
	default:
		acquired, err = filelock.Try(t.file)
	}
	return acquired, errors.Join(err, t.lockEntry(unix.F_OFD_SETLK, unix.F_UNLCK))
}

// lockEntry locks or unlocks the entry lock, and retries if a signal interrupts it.
func (t *writeTurn) lockEntry(how int, kind int16) error {
	for {
		err := unix.FcntlFlock(t.file.Fd(), how, &unix.Flock_t{Type: kind, Len: 1})
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// holder describes the process that has the turn. If this process has it and the database is
// still busy, a program that does not use the turn has locked it.
func (t *writeTurn) holder() string {
	unknown := "another process is writing"
	if t == nil {
		return unknown
	}
	info, err := t.file.Stat()
	if err != nil {
		return unknown
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return unknown
	}
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return unknown
	}
	defer locks.Close()
	inode := fmt.Sprintf(":%d", st.Ino)
	for sc := bufio.NewScanner(locks); sc.Scan(); {
		f := strings.Fields(sc.Text()) // a line is, for example, 1: FLOCK ADVISORY WRITE 708 08:01:1234 0 EOF
		if len(f) >= 6 && f[1] == "FLOCK" && strings.HasSuffix(f[5], inode) {
			if f[4] == strconv.Itoa(os.Getpid()) {
				return "a program other than Lockkeeper keeps it locked"
			}
			name, _ := os.ReadFile("/proc/" + f[4] + "/comm")
			return fmt.Sprintf("pid %s (%s) is writing", f[4], strings.TrimSpace(string(name)))
		}
	}
	return unknown
}
