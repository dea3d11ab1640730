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
	"lockkeeper/store"
)

// A fifoListener reads from a named pipe. A process that commits a change for its id
// writes a byte into the pipe. Pipes need no watch descriptors and no shared daemon,
// and the first writer to a pipe whose reader died notices that.
type fifoListener struct {
	of    *openListeners
	file  *os.File
	path  string
	woken chan struct{}
	done  sync.WaitGroup
}

// openListeners knows the open listeners of one store, so that closing the store
// closes them.
type openListeners struct {
	mu     sync.Mutex
	all    map[*fifoListener]struct{}
	closed bool
}

func (y *openListeners) add(b *fifoListener) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.closed {
		return errClosed
	}
	if y.all == nil {
		y.all = map[*fifoListener]struct{}{}
	}
	y.all[b] = struct{}{}
	return nil
}

// remove reports whether the listener was still open.
func (y *openListeners) remove(b *fifoListener) bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	_, was := y.all[b]
	delete(y.all, b)
	return was
}

func (y *openListeners) close() error {
	y.mu.Lock()
	y.closed = true
	all := slices.Collect(maps.Keys(y.all))
	y.mu.Unlock()
	var errs []error
	for _, b := range all {
		errs = append(errs, b.Close())
	}
	return errors.Join(errs...)
}

func (s *SQLite) wakeDir() string { return s.path + "-bells" }

// Listen implements store.Store.
func (s *SQLite) Listen(_ context.Context, id string) (store.Listener, error) {
	if !isName(id) {
		return nil, &lockkeeper.InputError{Field: "id", Value: id, Reason: "not a valid wake-up id"}
	}
	f, path, err := makeFIFO(s.wakeDir(), id)
	if err != nil {
		return nil, s.explain(err)
	}
	b := &fifoListener{of: &s.listening, file: f, path: path, woken: make(chan struct{}, 1)}
	if err := s.listening.add(b); err != nil {
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
// open: one that no process has open is abandoned, and wakers remove it.
func makeFIFO(root, id string) (f *os.File, path string, err error) {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, "", err
	}
	name := rand.Text()
	draft := filepath.Join(root, "."+name)
	if err := syscall.Mkfifo(draft, 0o600); err != nil {
		return nil, "", err
	}
	defer os.Remove(draft)
	if f, err = os.OpenFile(draft, os.O_RDWR|syscall.O_NONBLOCK, 0); err != nil {
		return nil, "", err
	}
	path = filepath.Join(root, id, name)
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

func (b *fifoListener) listen() {
	var buf [64]byte
	for {
		if _, err := b.file.Read(buf[:]); err != nil {
			return // closed
		}
		select {
		case b.woken <- struct{}{}:
		default:
		}
	}
}

func (b *fifoListener) Woken() <-chan struct{} { return b.woken }

func (b *fifoListener) Close() error {
	if !b.of.remove(b) {
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

// wakeListeners wakes every listener of an id. It cannot fail in a way that
// matters: listeners also look by themselves from time to time.
func wakeListeners(root, id string) {
	if !isName(id) {
		return
	}
	dir := filepath.Join(root, id)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // no listener
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
