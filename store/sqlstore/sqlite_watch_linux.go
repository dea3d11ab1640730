package sqlstore

import (
	"context"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"lockkeeper/store"
)

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

// Woken implements store.Listener.
func (w *watch) Woken() <-chan struct{} { return w.woken }

// Close implements store.Listener.
func (w *watch) Close() error {
	err := w.events.Close()
	w.done.Wait()
	return err
}
