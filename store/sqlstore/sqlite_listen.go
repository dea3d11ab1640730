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

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/store"
)

// A fifoListener reads from a named pipe. A process that commits a change for its id writes a
// byte into the pipe. Pipes need no watch descriptors and no daemon, and a writer notices if
// the reader of a pipe died.
type fifoListener struct {
	of    *openListeners
	file  *os.File
	path  string
	woken chan struct{}
	done  sync.WaitGroup
}

// openListeners is the set of open listeners of one store. Closing the store closes them.
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

// remove removes a listener and reports whether it was still open.
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

// isName reports whether an id is safe as the name of a directory. Names with a leading dot are
// reserved for pipes that are being created.
func isName(id string) bool { return id != "" && id[0] != '.' && !strings.ContainsAny(id, "/\x00") }

// makeFIFO creates a pipe for one listener in the directory of its id. The pipe is open for
// reading and writing, so that reads never return EOF. It is opened before it is moved there,
// because wakers remove a pipe that no process has open.
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
		if !errors.Is(err, fs.ErrNotExist) { // another listener closed and removed the empty directory
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
			return // the listener was closed
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

// discard removes a pipe, and the directory of its id if that is empty.
func discard(path string) {
	os.Remove(path)
	os.Remove(filepath.Dir(path))
}

// wakeListeners wakes every listener of an id. It ignores errors, because listeners also poll.
func wakeListeners(root, id string) {
	if !isName(id) {
		return
	}
	dir := filepath.Join(root, id)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // the id has no listener
	}
	for _, e := range entries {
		if e.Type() != fs.ModeNamedPipe {
			continue
		}
		path := filepath.Join(dir, e.Name())
		fd, err := syscall.Open(path, syscall.O_WRONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC|syscall.O_NOFOLLOW, 0)
		if errors.Is(err, syscall.ENXIO) {
			discard(path) // the listener of this pipe died
		}
		if err != nil {
			continue
		}
		syscall.Write(fd, []byte{1})
		syscall.Close(fd)
	}
}

// A watch wakes a listener when a number is written to the turn's file.
type watch struct {
	events *os.File
	woken  chan struct{}
	done   sync.WaitGroup
}

// Watch implements store.Watcher. Every commit writes the last number to the turn's file anyway,
// so watchers cost the writers nothing.
func (s *SQLite) Watch(context.Context) (store.Listener, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, openProblem(s.path, err)
	}
	w := &watch{events: os.NewFile(uintptr(fd), "inotify"), woken: make(chan struct{}, 1)}
	if _, err := unix.InotifyAddWatch(fd, s.path+"-turn", unix.IN_MODIFY); err != nil {
		w.events.Close()
		return nil, openProblem(s.path+"-turn", err)
	}
	w.done.Go(w.listen)
	return w, nil
}

// listen forwards events until the descriptor is closed.
func (w *watch) listen() {
	for buf := make([]byte, 4096); ; {
		if _, err := w.events.Read(buf); err != nil {
			return
		}
		select {
		case w.woken <- struct{}{}:
		default:
		}
	}
}

func (w *watch) Woken() <-chan struct{} { return w.woken }

func (w *watch) Close() error {
	err := w.events.Close()
	w.done.Wait()
	return err
}
