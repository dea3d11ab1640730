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

	"lockkeeper"
	"lockkeeper/internal/machine/filelock"
)

// minGuardWait is the minimum time to wait for another process's operation, which takes
// milliseconds unless that process was suspended.
const minGuardWait = 5 * time.Second

// A guard is the exclusive right of one Lockkeeper process to read and change a lease
// file. The kernel releases it when the process dies.
type guard struct {
	*record
	file *os.File
}

// acquireGuard waits for the guard. It polls because a blocking flock cannot be canceled.
func acquireGuard(ctx context.Context, path string, patience time.Duration) (*guard, error) {
	patience = max(patience, minGuardWait)
	limit := time.Now().Add(patience)
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		f, err := openGuard(path, os.O_RDWR|os.O_CREATE)
		if err != nil {
			return nil, err
		}
		taken, err := tryGuard(f)
		if taken {
			return &guard{record: load(f), file: f}, nil
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

func openGuard(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK, filePerm)
	if err != nil {
		return nil, fmt.Errorf("guard file: %w", err)
	}
	return f, nil
}

// tryGuard locks the guard unless another process holds it. A file that was removed
// meanwhile guards nothing.
func tryGuard(f *os.File) (bool, error) {
	if taken, err := filelock.Try(f); err != nil || !taken {
		return false, err
	}
	mine, err := f.Stat()
	if err == nil && !mine.Mode().IsRegular() {
		err = lockkeeper.WithNext(errors.New("not a regular file"), "remove it")
	}
	if err != nil {
		return false, err
	}
	now, err := os.Lstat(f.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(mine, now), err
}

func (g *guard) release() error { return errors.Join(filelock.Unlock(g.file), g.file.Close()) }

// diskTime returns the time of the clock that stamps files.
func (g *guard) diskTime() (time.Time, error) {
	_, err := g.file.WriteAt([]byte{'\n'}, 2*slotSize)
	if err != nil {
		return time.Time{}, fmt.Errorf("guard: %w", err)
	}
	info, err := g.file.Stat()
	if err != nil {
		return time.Time{}, fmt.Errorf("guard: %w", err)
	}
	return info.ModTime(), nil
}

// A record is what Lockkeeper processes share about a lease file. It is not synced,
// because after a crash of the host no process holds anything.
type record struct {
	Serial uint64   `json:"serial"`
	PID    int      `json:"pid"`            // the writing process
	Seen   sighting `json:"seen,omitzero"`  // when a foreign file was first seen
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
	Token  string   `json:"token"` // the token in the lease file
	Shared bool     `json:"shared,omitempty"`
	By     []member `json:"by"`
}

// A member is one holder in a hold.
type member struct {
	payload
	At         Reading       `json:"at"` // when the lease was acquired or last renewed
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
	f, err := openGuard(path, os.O_RDONLY)
	if err != nil {
		return &record{}, err
	}
	return load(f), f.Close()
}

func (g *guard) save() error {
	g.Serial++
	g.PID = os.Getpid()
	text, err := json.Marshal(g.record)
	if err != nil {
		return err
	}
	if slotHead+len(text) > slotSize {
		return fmt.Errorf("guard %s: too many readers to record: %d", g.file.Name(), len(g.Held.By))
	}
	head := binary.BigEndian.AppendUint64(nil, g.Serial)
	head = binary.BigEndian.AppendUint32(head, uint32(len(text)))
	head = binary.BigEndian.AppendUint32(head, crc32.ChecksumIEEE(text))
	if _, err := g.file.WriteAt(append(head, text...), int64(g.Serial%2)*slotSize); err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	return nil
}
