package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"lockkeeper"
	"lockkeeper/internal/machine/filelock"
	"lockkeeper/lock"
	"lockkeeper/rescue"
	"lockkeeper/store"
)

// Hooks compare files when their session calls. A program that detached itself from a session's command
// may write later, while no session calls. So long-running processes of the codebase watch the held
// files: MCP servers, which live as long as their sessions, language servers and the dashboard.

// watchPause is the time between two looks at the held files. A look that takes long is followed by a
// pause that is longer by the factor watchShare.
const (
	watchPause = 2 * time.Second
	watchShare = 50
)

// Watched does some work and meanwhile compares the held files. Of several processes only one compares.
// report gets what fails while the work goes on.
func (b *Registry) Watched(ctx context.Context, report func(error), work func(context.Context) error) error {
	watching, stop := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	defer watcher.Wait()
	defer stop()
	watcher.Go(func() {
		if err := b.watch(watching); err != nil && watching.Err() == nil {
			report(err)
		}
	})
	return work(ctx)
}

// watch compares the held files until the context ends, or until that fails.
func (b *Registry) watch(ctx context.Context) (err error) {
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(b.dir, "watch"+lockEnd), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := watch{registry: b, left: map[string]Print{}}
	for mine := false; ; {
		began := time.Now()
		if !mine {
			if mine, err = filelock.Try(f); err != nil {
				return err
			}
		}
		if mine {
			if err := w.look(ctx); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(max(watchPause, watchShare*time.Since(began))):
		}
	}
}

// A watch knows the last states of files whose holders are not sessions of this user.
type watch struct {
	registry *Registry
	left     map[string]Print
}

// look compares the held files once.
func (w *watch) look(ctx context.Context) error {
	known, err := w.registry.records()
	if err != nil {
		return err
	}
	sessions := map[string]bool{} // by grant
	for file, r := range known {
		if r.GrantID == "" {
			continue
		}
		sessions[r.GrantID] = true
		changed, wrong := w.registry.changedSince(r)
		if wrong == nil && changed {
			wrong = w.registry.tellSession(ctx, file)
		}
		err = errors.Join(err, wrong)
	}
	var others []*store.Record
	err = errors.Join(err, w.registry.app.Store.View(ctx, func(r store.Reader) error {
		all, err := w.registry.app.Locks.GrantsIn(r)
		others = slices.DeleteFunc(all, func(g *store.Record) bool { return sessions[g.ID] })
		return err
	}))
	return errors.Join(err, w.others(ctx, others, known))
}

// changedSince reports whether a file of a session is not as the session left it.
func (b *Registry) changedSince(r record) (bool, error) {
	now, err := fileClock()
	if err != nil {
		return false, err
	}
	for path, was := range r.Files {
		if is, err := b.stat(path); err != nil || was.there().touched(is) && !r.mayWrite(path, now) {
			return err == nil, err
		}
	}
	return false, nil
}

// tellSession compares the files that a session holds, keeps its versions, and leaves it notices.
func (b *Registry) tellSession(ctx context.Context, file string) (err error) {
	s := &Session{registry: b, file: file}
	if s.lock, err = lockFile(lockOf(file)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.lock.Close()) }()
	if s.rec, err = readRecord(file); err != nil || s.rec.ID == "" {
		return err
	}
	list, err := s.Disturbed(ctx, Call{})
	for _, d := range list {
		s.Notify("", d.String())
		s.NotifyBeside(d)
	}
	if len(list) > 0 {
		err = errors.Join(err, s.save())
	}
	return err
}

// others keeps the versions of files that people, runs and commands hold, if a command of a session may
// have changed them. Such a holder does not report what it writes, so nothing else shows who wrote.
func (w *watch) others(ctx context.Context, grants []*store.Record, sessions map[string]record) (err error) {
	seen := map[string]Print{}
	for _, g := range grants {
		for _, l := range g.Locks {
			if l.Mode != lockkeeper.Write || l.Kind != lockkeeper.File || isReserved(l.Path) {
				continue
			}
			is, wrong := w.registry.stat(l.Path)
			was, known := w.left[l.Path]
			if wrong == nil && (!known || was.touched(is)) {
				is, wrong = w.changed(ctx, g, l.Path, was, known, sessions)
			} else {
				is.Sum = was.Sum
			}
			seen[l.Path], err = is, errors.Join(err, wrong)
		}
	}
	w.left = seen
	return err
}

// changed returns the current state of a file and keeps a copy of it. If it changed while a session's
// command may have run, it keeps the version before on the shelf.
func (w *watch) changed(ctx context.Context, g *store.Record, path string, was Print, known bool, sessions map[string]record) (is Print, err error) {
	b := w.registry
	is, content, err := b.read(path)
	if err == nil && is.Sum != "" {
		err = b.copy(is.Sum, content)
	}
	before := Copy(b.app, was.Sum)
	if err != nil || !known || !was.changed(is) || before == nil {
		return is, err
	}
	writer := ""
	for _, r := range sessions {
		if b.alive(r.Info) && r.mayHaveWritten(is) {
			writer = r.Callsign
		}
	}
	if writer == "" {
		return is, nil
	}
	s := &Session{registry: b}
	reason := "it was changed while " + g.Holder + " held it, maybe by a command of " + writer
	kept, err := s.shelve(ctx, rescue.Entry{Kind: rescue.Displaced, Path: path, GrantID: g.ID, Holder: g.Holder, Mode: 0o644, Reason: reason}, before)
	if err != nil {
		return is, err
	}
	return is, b.app.Locks.Update(ctx, func(a *lock.Tx) error {
		_, err := a.Append(lockkeeper.Event{Kind: lockkeeper.EventGap, Actor: lockkeeper.Actor{Name: writer, Kind: lockkeeper.ActorAgent}, Holder: g.Holder, GrantID: g.ID,
			Locks: []lockkeeper.Lock{write(path)}, Reason: reason, Data: map[string]string{"rescue": kept.ID, "doubt": "its holder does not report what it writes"}})
		return err
	})
}

// mayHaveWritten reports whether a command of a session ran when a file changed, or continues.
func (r *record) mayHaveWritten(is Print) bool {
	return is.Inode != 0 && r.ranAt(is.Ctime) || slices.ContainsFunc(r.Background, func(c Call) bool { return c.At <= is.Ctime && is.Ctime-c.At < int64(longestCall) })
}
