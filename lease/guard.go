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

	"golang.org/x/sys/unix"
)

// guardPatience is how long one waits at least for others of ours to finish what they
// are at: a few milliseconds, unless one of them was stopped in the middle.
const guardPatience = 5 * time.Second

// guard is the right to look at a lease file and change it, among all of ours. The
// kernel gives it on when a process dies.
type guard struct {
	*record
	path string
	file descriptor
}

// enter waits for the guard. Waiting in the kernel could not be called off, so it
// asks again and again.
func enter(ctx context.Context, path string, patience time.Duration) (*guard, error) {
	patience = max(patience, guardPatience)
	limit := time.Now().Add(patience)
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		f, err := openDescriptor(path, unix.O_RDWR|unix.O_CREAT)
		if err != nil {
			return nil, err
		}
		taken, err := f.take(path)
		if taken {
			return &guard{record: load(f), path: path, file: f}, nil
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("guard %s: %w", path, err)
		}
		if time.Now().After(limit) {
			last, _ := recordAt(path)
			return nil, fmt.Errorf("guard %s: another process has it for %s and does not go on; the last to write in it was pid %d; next: see whether that one is stopped",
				path, patience, last.PID)
		}
		if err := wait(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// leave lets the next one in. The lock is given back before the file is closed: a
// child that is just being started has a copy of it for a moment.
func (g *guard) leave() error {
	return errors.Join(unix.Flock(int(g.file), unix.LOCK_UN), g.file.Close())
}

// diskTime is the time by the clock that stamps files.
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

// descriptor is an open guard. It is used for a few microseconds, twice for every
// lease: an os.File, with what it asks the kernel at its opening, costs more than that.
type descriptor int

func openDescriptor(path string, flags int) (descriptor, error) {
	for {
		fd, err := unix.Open(path, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, filePerm)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return -1, fmt.Errorf("guard of a lease: %w", &fs.PathError{Op: "open", Path: path, Err: err})
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

// take locks the guard unless somebody has it. A file that was removed meanwhile
// guards nothing.
func (f descriptor) take(path string) (bool, error) {
	err := unix.Flock(int(f), unix.LOCK_EX|unix.LOCK_NB)
	if err == unix.EWOULDBLOCK || err == unix.EINTR {
		return false, nil
	}
	var mine, now unix.Stat_t
	if err == nil {
		err = unix.Fstat(int(f), &mine)
	}
	if err == nil && mine.Mode&unix.S_IFMT != unix.S_IFREG {
		err = errors.New("it is no regular file; next: remove it")
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

// record is what ours tell each other about a lease file. It is not synced: after a
// crash of the host nobody holds anything.
type record struct {
	Serial uint64   `json:"serial"`
	PID    int      `json:"pid"`            // who wrote it
	Seen   sighting `json:"seen,omitzero"`  // of what is not ours
	Held   *hold    `json:"held,omitempty"` // nil: nobody of ours holds it
}

// sightingOf is when what is in the lease file was seen first. What one of ours wrote
// was seen then.
func (r *record) sightingOf(f *found) sighting {
	if r.Held == nil || !f.carries(r.Held.Token) {
		return r.Seen
	}
	return sighting{Key: f.key(), Ours: true, At: r.Held.last().At}
}

// sighting is what was in the lease file when one of ours looked, and when this was
// seen first.
type sighting struct {
	Key  string  `json:"key"`
	Ours bool    `json:"-"`
	At   Reading `json:"at"`
}

// hold is a lease of ours: of one holder, or of a group of readers.
type hold struct {
	Token  string `json:"token"` // in the lease file
	Shared bool   `json:"shared,omitempty"`
	By     []stay `json:"by"`
}

// stay is one holder's part in a hold.
type stay struct {
	payload
	At         Reading       `json:"at"` // when it was taken or renewed last
	TTL        time.Duration `json:"ttl"`
	AcquiredIn time.Duration `json:"acquired_in"`
	Renewals   int           `json:"renewals,omitempty"`
	Phase      string        `json:"phase,omitempty"`
}

// The record is stored in two slots by turns, so that whoever dies while it writes
// leaves the one before. A slot begins with the record's serial number, its length
// and its checksum.
const (
	slotSize = 64 << 10
	slotHead = 16
)

type slot struct {
	serial      uint64
	length, sum uint32
	at          int64
}

// load reads the newest whole record; an empty one when there is none.
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

// load reads the record of a slot; nil when it is not whole.
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

// recordAt reads a record without the guard, for whoever only looks.
func recordAt(path string) (*record, error) {
	f, err := openDescriptor(path, unix.O_RDONLY)
	if err != nil {
		return &record{}, err
	}
	return load(f), f.Close()
}

// save stores the record for the next one.
func (g *guard) save() error {
	g.Serial++
	g.PID = os.Getpid()
	text, err := json.Marshal(g.record)
	if err != nil {
		return err
	}
	if slotHead+len(text) > slotSize {
		return fmt.Errorf("guard %s: %d readers are more than it can record", g.path, len(g.Held.By))
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
