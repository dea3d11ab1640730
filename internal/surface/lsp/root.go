package lsp

import (
	"context"
	"errors"
	"sync"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session"
	"lockkeeper/internal/surface/feed"
)

// A root is an open codebase that has open documents.
type root struct {
	dir      string
	app      *project.Project
	sessions *session.Registry
	feed     *feed.Feed
	stop     context.CancelFunc
	done     sync.WaitGroup
}

// A news is a batch of events from the feed of a codebase, a change of a held file, or a failure to
// compare the held files.
type news struct {
	root    *root
	events  []lockkeeper.Event
	changed *session.HeldChange
	failed  error
}

// rootOf returns the codebase of a file and opens it if needed, or nil if there is none.
func (s *Server) rootOf(ctx context.Context, file string) (*root, error) {
	dir, err := project.RootOf(file, s.opt.Lookup)
	if err != nil || dir == "" {
		return nil, err
	}
	if r := s.roots[dir]; r != nil {
		return r, nil
	}
	if err := s.failed[dir]; err != nil { // an unreachable store delays once, and not once for each document
		return nil, err
	}
	r, err := s.openRoot(ctx, dir)
	if err != nil {
		s.failed[dir] = err
		return nil, err
	}
	s.roots[dir] = r
	return r, nil
}

func (s *Server) openRoot(ctx context.Context, dir string) (*root, error) {
	app, err := s.opt.Open(ctx, dir)
	if err != nil {
		return nil, err
	}
	events, err := feed.Open(ctx, app.Store, feed.Options{})
	if err != nil {
		return nil, errors.Join(err, app.Close())
	}
	following, stop := context.WithCancel(ctx)
	r := &root{dir: dir, app: app, sessions: session.Open(app), feed: events, stop: stop}
	r.done.Go(func() { r.follow(following, s.woken) })
	r.done.Go(func() {
		r.sessions.Watch(following, session.Watcher{
			Failed:  func(err error) { r.pass(following, s.woken, news{root: r, failed: err}) },
			Changed: func(c session.HeldChange) { r.pass(following, s.woken, news{root: r, changed: &c}) },
		})
	})
	return r, nil
}

// follow passes the events of the codebase on until ctx ends. The feed survives errors of the
// store, so only its end is an error.
func (r *root) follow(ctx context.Context, to chan<- news) {
	for seen := r.feed.Last(); ; {
		events, err := r.feed.Next(ctx, seen)
		if err != nil {
			return
		}
		seen = events[len(events)-1].Seq
		r.pass(ctx, to, news{root: r, events: events})
	}
}

func (r *root) pass(ctx context.Context, to chan<- news, n news) {
	select {
	case to <- n:
	case <-ctx.Done():
	}
}

func (r *root) close() error {
	r.stop()
	r.done.Wait()
	return errors.Join(r.feed.Close(), r.app.Close())
}

// leave closes a codebase that has no open documents.
func (s *Server) leave(r *root) error {
	if r == nil || s.roots[r.dir] != r {
		return nil
	}
	for _, d := range s.documents {
		if d.root == r {
			return nil
		}
	}
	delete(s.roots, r.dir)
	return s.logged(r.dir, r.close())
}

// drop closes a codebase after an error. Its documents belong to none until the server searches again.
func (s *Server) drop(r *root, failed error) error {
	for _, d := range s.documents {
		if d.root == r {
			d.root = nil
		}
	}
	return errors.Join(s.log(r.dir, failed), s.leave(r))
}

// logged writes an error to the editor's log.
func (s *Server) logged(about string, failed error) error {
	if failed == nil {
		return nil
	}
	return s.log(about, failed)
}

// hear handles the events of a codebase.
func (s *Server) hear(ctx context.Context, n news) error {
	if s.roots[n.root.dir] != n.root {
		return nil // the document was closed meanwhile
	}
	if n.failed != nil {
		return s.log(n.root.dir+" (held files)", n.failed)
	}
	if n.changed != nil {
		return s.heldChange(n.root, *n.changed)
	}
	for _, ev := range n.events {
		if err := s.asked(n.root, ev); err != nil {
			return err
		}
	}
	return s.refresh(ctx, n.root)
}

// look finds codebases that appeared, moved or vanished, and holders whose processes ended.
func (s *Server) look(ctx context.Context) error {
	clear(s.failed)
	for _, d := range s.documents {
		if err := s.place(ctx, d); err != nil {
			return err
		}
	}
	for _, r := range s.roots {
		if err := s.refresh(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// close releases the claims of the server and closes all codebases.
func (s *Server) close(ctx context.Context) (err error) {
	for _, d := range s.documents {
		err = errors.Join(err, s.releaseClaim(ctx, d))
	}
	for dir, r := range s.roots {
		delete(s.roots, dir)
		err = errors.Join(err, r.close())
	}
	return err
}
