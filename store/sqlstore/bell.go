package sqlstore

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"lockkeeper"
)

// fifoBell is a named pipe that whoever commits a change for its id writes a
// byte into. Pipes need no watch descriptors and no shared daemon, and one
// whose listener died is noticed by the first who rings it.
type fifoBell struct {
	of   *belfry
	file *os.File
	path string
	ring chan struct{}
	done sync.WaitGroup
}

// belfry knows the bells of one store that are open, so that closing the store
// ends them.
type belfry struct {
	mu     sync.Mutex
	bells  map[*fifoBell]struct{}
	closed bool
}

func (y *belfry) hang(b *fifoBell) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.closed {
		return errClosed
	}
	if y.bells == nil {
		y.bells = map[*fifoBell]struct{}{}
	}
	y.bells[b] = struct{}{}
	return nil
}

// takeDown reports whether the bell was still hanging.
func (y *belfry) takeDown(b *fifoBell) bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	_, was := y.bells[b]
	delete(y.bells, b)
	return was
}

func (y *belfry) close() error {
	y.mu.Lock()
	y.closed = true
	all := slices.Collect(maps.Keys(y.bells))
	y.mu.Unlock()
	var errs []error
	for _, b := range all {
		errs = append(errs, b.Close())
	}
	return errors.Join(errs...)
}

func (s *SQLite) bells() string { return s.path + "-bells" }

// Bell implements lockkeeper.Store.
func (s *SQLite) Bell(_ context.Context, id string) (lockkeeper.Bell, error) {
	if !isName(id) {
		return nil, &lockkeeper.InputError{Field: "id", Value: id, Reason: "cannot name a bell"}
	}
	f, path, err := makeFIFO(s.bells(), id)
	if err != nil {
		return nil, s.explain(err)
	}
	b := &fifoBell{of: &s.belfry, file: f, path: path, ring: make(chan struct{}, 1)}
	if err := s.belfry.hang(b); err != nil {
		f.Close()
		discard(path)
		return nil, &lockkeeper.StoreError{Store: s.path, Reason: "closed", Err: err}
	}
	b.done.Go(b.listen)
	return b, nil
}

// isName keeps the directories of ids apart from each other, from what is being
// made beside them, and from everything outside.
func isName(id string) bool { return id != "" && id[0] != '.' && !strings.ContainsAny(id, "/\x00") }

// makeFIFO makes a pipe of its own for one listener in the directory of its id,
// open for reading and writing so that it never reports an end. It gets there
// open: one that nobody has open is abandoned, and ringers remove it.
func makeFIFO(bells, id string) (f *os.File, path string, err error) {
	if err := os.MkdirAll(bells, 0o700); err != nil {
		return nil, "", err
	}
	name := rand.Text()
	draft := filepath.Join(bells, "."+name)
	if err := syscall.Mkfifo(draft, 0o600); err != nil {
		return nil, "", err
	}
	defer os.Remove(draft)
	if f, err = os.OpenFile(draft, os.O_RDWR|syscall.O_NONBLOCK, 0); err != nil {
		return nil, "", err
	}
	path = filepath.Join(bells, id, name)
	for range 100 {
		if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
			err = os.Rename(draft, path)
		}
		if !errors.Is(err, fs.ErrNotExist) { // the last of other listeners took the directory with it
			break
		}
	}
	if err != nil {
		f.Close()
	}
	return f, path, err
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
	if !b.of.takeDown(b) {
		return nil
	}
	err := b.file.Close()
	b.done.Wait()
	discard(b.path)
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
	if !isName(id) {
		return
	}
	dir := filepath.Join(bells, id)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // nobody listens
	}
	for _, e := range entries {
		if e.Type() != fs.ModeNamedPipe {
			continue
		}
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
