package view

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"lockkeeper/internal/session"
	"lockkeeper/rescue"
)

// shelf is the rescue shelf as it was read. Entries are never changed, and come and go by
// renames, which change the shelf.
type shelf struct {
	entries []rescue.Entry
	changed time.Time
	settled bool
}

// kept lists what is on the rescue shelf, oldest first, and reads it only if that may have
// changed. Beside an error it lists what could be read.
func (l *Look) kept(ctx context.Context) (_ []rescue.Entry, err error) {
	recovering := session.RecoverSnapshots(ctx, l.app)
	defer func() { err = errors.Join(recovering, err) }()
	info, err := os.Stat(l.app.Shelf().Dir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	known := l.shelf
	l.mu.Unlock()
	if known.settled && known.changed.Equal(info.ModTime()) {
		return known.entries, nil
	}
	list, err := l.app.Shelf().List(ctx)
	if err != nil {
		return list, err
	}
	l.mu.Lock()
	l.shelf = shelf{entries: list, changed: info.ModTime(), settled: time.Since(info.ModTime()) > tick}
	l.mu.Unlock()
	return list, nil
}
