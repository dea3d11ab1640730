package author

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	glance  = 500 * time.Millisecond // between two looks whether the file is another one
	lookout = 5 * time.Second        // between two comparisons with the store, which others may have changed
)

// Watch keeps the file and the store in agreement until it is closed.
type Watch struct {
	stop context.CancelFunc
	done chan struct{}
}

// Watch begins to watch over the file. Each note is told once, as long as it holds,
// and so is each kind of trouble.
func (au *Author) Watch(ctx context.Context, tell func(Note), trouble func(error)) *Watch {
	ctx, stop := context.WithCancel(ctx)
	w := &Watch{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		if au.file != nil {
			au.watch(ctx, tell, trouble)
		}
	}()
	return w
}

// Close ends the watching.
func (w *Watch) Close() {
	w.stop()
	<-w.done
}

// watch hears of changes where the system tells them, and looks by itself besides.
func (au *Author) watch(ctx context.Context, tell func(Note), trouble func(error)) {
	var watcher *fsnotify.Watcher
	var events chan fsnotify.Event
	var lost chan error
	if made, err := fsnotify.NewWatcher(); err == nil {
		watcher, events, lost = made, made.Events, made.Errors
		defer watcher.Close()
	}
	tick := time.NewTicker(glance)
	defer tick.Stop()
	var told []Note
	failed := ""
	var seen os.FileInfo
	due := time.Time{}
	for {
		now := au.look()
		if changed(seen, now) || !time.Now().Before(due) {
			notes, err := au.sync(ctx, nil)
			if ctx.Err() != nil {
				return
			}
			due = time.Now().Add(lookout)
			if err != nil && err.Error() != failed {
				failed = err.Error()
				trouble(err)
			}
			for _, n := range notes {
				if !slices.ContainsFunc(told, n.same) {
					tell(n)
				}
			}
			if err == nil {
				failed, told, seen = "", notes, now
			}
			if watcher != nil { // once more is harmless; while there is no directory, looking has to do
				_ = watcher.Add(filepath.Dir(au.file.Path()))
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-events:
		case <-lost: // the next look finds what it was about
		case <-tick.C:
		}
	}
}

// look is what is known of the file without reading it; nil: there is none.
func (au *Author) look() os.FileInfo {
	info, err := os.Lstat(au.file.Path())
	if err != nil {
		return nil
	}
	return info
}

func changed(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a != b
	}
	return !os.SameFile(a, b) || !a.ModTime().Equal(b.ModTime()) || a.Size() != b.Size()
}

// same reports whether two notes say the same.
func (n Note) same(o Note) bool {
	if n.Kind != o.Kind || n.Entry != o.Entry || n.Corrupt != nil {
		return false
	}
	return slices.EqualFunc(n.Blockers, o.Blockers, func(a, b Standing) bool { return a.Grant == b.Grant })
}
