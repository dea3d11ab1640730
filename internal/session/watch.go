package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"lockkeeper/internal/machine/filelock"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project/config"
	"lockkeeper/store"
)

// Hooks compare files when their session calls. A program that detached itself from a command may write
// later, while no session calls. So long-running processes of the codebase watch the held files: MCP
// servers, which live as long as their sessions, language servers, runs, workers, lock exec and the dashboard.

// watchPause is the time between two comparisons of the held files. After a comparison that takes
// long, the pause is longer: watchShare times the duration of the comparison.
const (
	watchPause = 2 * time.Second
	watchShare = 50
	lastHeard  = time.Second // limit of the last read of the log, when the work has ended
)

// A Watcher is told what the processes that compare held files find.
type Watcher struct {
	Failed  func(error)      // a comparison failed; the same error is told once
	Changed func(HeldChange) // a file of a holder that is not a session was changed; nil: not told
}

// Watched does some work and meanwhile compares the held files. If several processes watch, only
// one compares, and all are told the result.
func (b *Registry) Watched(ctx context.Context, tell Watcher, work func(context.Context) error) error {
	watching, stop := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	defer watcher.Wait()
	defer stop()
	watcher.Go(func() { b.Watch(watching, tell) })
	return work(ctx)
}

// Watch does what Watched does, until the context ends and without work of its own.
func (b *Registry) Watch(ctx context.Context, tell Watcher) {
	w := watch{registry: b, tell: tell, left: map[string]Print{}, moments: map[string]*process.Moment{}}
	if err := w.run(ctx); err != nil && ctx.Err() == nil {
		tell.Failed(err)
	}
}

// remotePause is how long a command runs before its first look at a store on a server.
const remotePause = time.Second

// A watch knows the last states of files whose holders are not sessions of this user.
type watch struct {
	registry *Registry
	tell     Watcher
	heard    uint64                     // number of the last event of the log that was read
	left     map[string]Print           // the state in which each holder left a path, by grant and path
	moments  map[string]*process.Moment // states of the commands that hold files at the last look, by grant
}

// run looks at the held files until the context ends.
func (w *watch) run(ctx context.Context) (err error) {
	b := w.registry
	if config.IsPostgres(b.app.Config.Store) { // the look would delay a short command by several round trips
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(remotePause):
		}
	}
	if err := w.begin(ctx); err != nil {
		return err
	}
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(b.dir, "watch"+lockEnd), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	said := ""
	for mine := false; ; {
		began := time.Now()
		if !mine {
			if mine, err = filelock.Try(f); err != nil {
				return err
			}
		}
		var wrong error
		if mine {
			wrong = w.look(ctx)
		}
		if wrong = errors.Join(wrong, w.hear(ctx)); wrong != nil && wrong.Error() != said && ctx.Err() == nil {
			said = wrong.Error()
			w.tell.Failed(wrong)
		}
		select {
		case <-ctx.Done():
			last, stop := context.WithTimeout(context.WithoutCancel(ctx), lastHeard)
			defer stop()
			return w.hear(last)
		case <-time.After(max(watchPause, watchShare*time.Since(began))):
		}
	}
}

// look compares the held files once.
func (w *watch) look(ctx context.Context) error {
	known, err := w.registry.records()
	if err != nil {
		return err
	}
	sessions := map[string]bool{} // the grants of sessions
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
	return errors.Join(err, w.others(ctx, others, known), w.registry.RestoreModes(ctx))
}

// changedSince reports whether a file of a session is not as the session left it.
func (b *Registry) changedSince(r record) (bool, error) {
	now, err := fileClock()
	if err != nil {
		return false, err
	}
	for path, was := range r.Files {
		if is, err := b.stat(path); err != nil || was.expected().touched(is) && !r.mayWrite(path, now) {
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
