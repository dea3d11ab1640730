package lease

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"time"

	"lockkeeper"

	"golang.org/x/sys/unix"
)

// minGuardWait is the minimum time to wait for another process's operation, which takes
// milliseconds unless that process was suspended.
const minGuardWait = 5 * time.Second

// A guard is the exclusive right of one Lockkeeper process to read and change a lease
// file. The kernel releases it when the process dies.
type guard struct {
	*record
	path string
	file descriptor
}

// acquireGuard waits for the guard. It polls because a blocking flock cannot be canceled.
func acquireGuard(ctx context.Context, path string, patience time.Duration) (*guard, error) {
	patience = max(patience, minGuardWait)
	limit := time.Now().Add(patience)
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		f, err := openDescriptor(path, unix.O_RDWR|unix.O_CREAT)
		if err != nil {
			return nil, err
		}
		taken, err := f.tryLock(path)
		if taken {
			return &guard{record: load(f), path: path, file: f}, nil
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("guard %s: %w", path, err)
		}
		if time.Now().After(limit) {
			last, _ := recordAt(path)
			return nil, lockkeeper.WithNext(fmt.Errorf("guard %s: another process has held it for %s; pid %d wrote it last", path, patience, last.PID),
				"check whether that process is stopped")
		}
		if err := wait(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// release unlocks before closing: a child process that is being started has a copy of the
// descriptor for a moment.
func (g *guard) release() error {
	return errors.Join(unix.Flock(int(g.file), unix.LOCK_UN), g.file.Close())
}

// diskTime returns the time of the clock that stamps files.
func (g *guard) diskTime() (time.Time, error) {
	if _, err := unix.Pwrite(int(g.file), []byte{'\n'}, 2*slotSize); err != nil {
		return time.Time{}, fmt.Errorf("guard %s: %w", g.path, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(g.file), &st); err != nil {
		return time.Time{}, fmt.Errorf("guard %s: %w", g.path, err)
	}
	return time.Unix(st.Mtim.Unix()), nil
}

// A descriptor is an open guard file. It is used for microseconds, twice per operation;
// the system calls of an os.File would cost more than that.
type descriptor int

func openDescriptor(path string, flags int) (descriptor, error) {
	for {
		fd, err := unix.Open(path, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, filePerm)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return -1, fmt.Errorf("guard file: %w", &fs.PathError{Op: "open", Path: path, Err: err})
		}
		return descriptor(fd), nil
	}
}

// ReadAt implements io.ReaderAt, for regular files.
func (f descriptor) ReadAt(b []byte, at int64) (int, error) {
	n, err := unix.Pread(int(f), b, at)
	if err == nil && n < len(b) {
		err = io.ErrUnexpectedEOF
	}
	return max(n, 0), err
}

// Close implements io.Closer.
func (f descriptor) Close() error { return unix.Close(int(f)) }

// tryLock locks the guard unless another process holds it. A file that was removed
// meanwhile guards nothing.
func (f descriptor) tryLock(path string) (bool, error) {
	err := unix.Flock(int(f), unix.LOCK_EX|unix.LOCK_NB)
	if err == unix.EWOULDBLOCK || err == unix.EINTR {
		return false, nil
	}
	var mine, now unix.Stat_t
	if err == nil {
		err = unix.Fstat(int(f), &mine)
	}
	if err == nil && mine.Mode&unix.S_IFMT != unix.S_IFREG {
		err = lockkeeper.WithNext(errors.New("not a regular file"), "remove it")
	}
	if err != nil {
		return false, err
	}
	err = unix.Lstat(path, &now)
	if err == unix.ENOENT {
		return false, nil
	}
	return err == nil && mine.Dev == now.Dev && mine.Ino == now.Ino, err
}

// A record is what Lockkeeper processes share about a lease file. It is not synced,
// because after a crash of the host no process holds anything.
type record struct {
	Serial uint64   `json:"serial"`
	PID    int      `json:"pid"`            // the writing process
	Seen   sighting `json:"seen,omitzero"`  // of a foreign file
	Held   *hold    `json:"held,omitempty"` // nil if no Lockkeeper process holds it
}

// sightingOf returns when the content of the lease file was seen first. A Lockkeeper file
// is seen when it is written.
func (r *record) sightingOf(f *fileState) sighting {
	if r.Held == nil || !f.hasToken(r.Held.Token) {
		return r.Seen
	}
	return sighting{Key: f.key(), Ours: true, At: r.Held.last().At}
}

// A sighting is the content of a lease file and when it was seen first.
type sighting struct {
	Key  string  `json:"key"`
	Ours bool    `json:"-"`
	At   Reading `json:"at"`
}

// A hold is a lease file held through this package, by one holder or a group of readers.
type hold struct {
	Token  string   `json:"token"` // in the lease file
	Shared bool     `json:"shared,omitempty"`
	By     []member `json:"by"`
}

// A member is one holder in a hold.
type member struct {
	payload
	At         Reading       `json:"at"` // when it was acquired or last renewed
	TTL        time.Duration `json:"ttl"`
	AcquiredIn time.Duration `json:"acquired_in"`
	Renewals   int           `json:"renewals,omitempty"`
	Phase      string        `json:"phase,omitempty"`
}

// The record is written to two slots alternately, so that a process that dies while
// writing leaves the previous record intact. A slot begins with the serial number, length
// and checksum of its record.
const (
	slotSize = 64 << 10
	slotHead = 16
)

type slot struct {
	serial      uint64
	length, sum uint32
	at          int64
}

// load reads the newest complete record, or returns an empty one.
func load(r io.ReaderAt) *record {
	var slots [2]slot
	for n := range slots {
		var head [slotHead]byte
		at := int64(n) * slotSize
		if _, err := r.ReadAt(head[:], at); err == nil {
			slots[n] = slot{binary.BigEndian.Uint64(head[:]), binary.BigEndian.Uint32(head[8:]), binary.BigEndian.Uint32(head[12:]), at + slotHead}
		}
	}
	if slots[0].serial < slots[1].serial {
		slots[0], slots[1] = slots[1], slots[0]
	}
	for _, s := range slots {
		if rec := s.load(r); rec != nil {
			return rec
		}
	}
	return &record{}
}

// load reads the record of a slot, or returns nil if it is incomplete.
func (s slot) load(r io.ReaderAt) *record {
	if s.serial == 0 || s.length > slotSize-slotHead {
		return nil
	}
	text := make([]byte, s.length)
	if _, err := r.ReadAt(text, s.at); err != nil || crc32.ChecksumIEEE(text) != s.sum {
		return nil
	}
	rec := &record{}
	if json.Unmarshal(text, rec) != nil || rec.Serial != s.serial {
		return nil
	}
	return rec
}

// recordAt reads a record without locking the guard.
func recordAt(path string) (*record, error) {
	f, err := openDescriptor(path, unix.O_RDONLY)
	if err != nil {
		return &record{}, err
	}
	return load(f), f.Close()
}

// save writes the record.
func (g *guard) save() error {
	g.Serial++
	g.PID = os.Getpid()
	text, err := json.Marshal(g.record)
	if err != nil {
		return err
	}
	if slotHead+len(text) > slotSize {
		return fmt.Errorf("guard %s: too many readers to record: %d", g.path, len(g.Held.By))
	}
	head := binary.BigEndian.AppendUint64(nil, g.Serial)
	head = binary.BigEndian.AppendUint32(head, uint32(len(text)))
	head = binary.BigEndian.AppendUint32(head, crc32.ChecksumIEEE(text))
	line := append(head, text...)
	n, err := unix.Pwrite(int(g.file), line, int64(g.Serial%2)*slotSize)
	if err == nil && n < len(line) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return fmt.Errorf("guard %s: %w", g.path, err)
	}
	return nil
}
