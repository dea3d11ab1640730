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
	pollInterval = 500 * time.Millisecond // pause between two checks of the file
	syncInterval = 5 * time.Second        // pause between two comparisons with the store
)

// A Watch keeps the file and the store synchronized until it is closed.
type Watch struct {
	stop context.CancelFunc
	done chan struct{}
}

// Watch starts to watch the file. It reports each note and each error once while it lasts.
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

func (w *Watch) Close() {
	w.stop()
	<-w.done
}

// watch synchronizes on file system events, and polls because they may be missing.
func (au *Author) watch(ctx context.Context, tell func(Note), trouble func(error)) {
	var watcher *fsnotify.Watcher
	var events chan fsnotify.Event
	var lost chan error
	if made, err := fsnotify.NewWatcher(); err == nil {
		watcher, events, lost = made, made.Events, made.Errors
		defer watcher.Close()
	}
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	var told []Note
	failed := ""
	var seen os.FileInfo
	nextSync := time.Time{}
	for {
		now := au.stat()
		if changed(seen, now) || !time.Now().Before(nextSync) {
			notes, err := au.sync(ctx, nil)
			if ctx.Err() != nil {
				return
			}
			nextSync = time.Now().Add(syncInterval)
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
			if watcher != nil { // watching a directory twice is harmless; without the directory only polling works
				_ = watcher.Add(filepath.Dir(au.file.Path()))
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-events:
		case <-lost: // the next poll finds the change
		case <-tick.C:
		}
	}
}

func (au *Author) stat() os.FileInfo {
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

// same reports whether two notes report the same fact.
func (n Note) same(o Note) bool {
	if n.Kind != o.Kind || n.Entry != o.Entry || n.Corrupt != nil {
		return false
	}
	return slices.EqualFunc(n.Blockers, o.Blockers, func(a, b GrantStatus) bool { return a.Grant == b.Grant })
}
