package sqlstore

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"lockkeeper"
)

// fifoBell is a named pipe that whoever commits a change for its id writes a
// byte into. Pipes need no watch descriptors and no shared daemon, and one
// whose listener died is noticed by the first who rings it.
type fifoBell struct {
	file *os.File
	ring chan struct{}
	done sync.WaitGroup
}

func (s *SQLite) bells() string { return s.path + "-bells" }

// Bell implements lockkeeper.Store.
func (s *SQLite) Bell(_ context.Context, id string) (lockkeeper.Bell, error) {
	if id == "" || strings.ContainsAny(id, "/\x00") || id[0] == '.' {
		return nil, &lockkeeper.InputError{Field: "id", Value: id, Reason: "cannot name a bell"}
	}
	f, err := makeFIFO(filepath.Join(s.bells(), id))
	if err != nil {
		return nil, s.explain(err)
	}
	b := &fifoBell{file: f, ring: make(chan struct{}, 1)}
	b.done.Go(b.listen)
	return b, nil
}

// makeFIFO makes a pipe of its own for one listener in the directory of its id,
// open for reading and writing so that it never reports an end. Until it is
// open a ringer may take it for abandoned and remove it, and its directory.
func makeFIFO(dir string) (f *os.File, err error) {
	for range 100 {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		path := filepath.Join(dir, rand.Text())
		if err = syscall.Mkfifo(path, 0o600); err == nil {
			f, err = os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return f, err
}

func (b *fifoBell) listen() {
	var buf [64]byte
	for {
		if _, err := b.file.Read(buf[:]); err != nil {
			return // closed
		}
		select {
		case b.ring <- struct{}{}:
		default:
		}
	}
}

func (b *fifoBell) Ring() <-chan struct{} { return b.ring }

func (b *fifoBell) Close() error {
	err := b.file.Close()
	b.done.Wait()
	discard(b.file.Name())
	return err
}

// discard removes a pipe, and the directory of its id when it was the last.
func discard(path string) {
	os.Remove(path)
	os.Remove(filepath.Dir(path))
}

// ring wakes everyone who listens for an id. It cannot fail in a way that
// matters: listeners also look by themselves from time to time.
func ring(bells, id string) {
	dir := filepath.Join(bells, id)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // nobody listens
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		fd, err := syscall.Open(path, syscall.O_WRONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC|syscall.O_NOFOLLOW, 0)
		if errors.Is(err, syscall.ENXIO) {
			discard(path) // its listener died
		}
		if err != nil {
			continue
		}
		syscall.Write(fd, []byte{1})
		syscall.Close(fd)
	}
}
