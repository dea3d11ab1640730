//go:build !nopostgres

package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"lockkeeper/store"
)

// channel returns the name of the notification channel of the space.
func (p *Postgres) channel() string { return fmt.Sprintf("lockkeeper_%d", p.key) }

// Listen returns once the server sends notifications, or cannot send them now. Whenever it cannot, the listener is
// woken every pollEvery.
func (p *Postgres) Listen(ctx context.Context, id string) (store.Listener, error) {
	b := &pgListener{subscription: p.listen, id: id, woken: make(chan struct{}, 1)}
	tried, err := p.listen.add(b)
	if err != nil {
		return nil, err
	}
	select {
	case <-tried:
		return b, nil
	case <-ctx.Done():
		p.listen.remove(b)
		return nil, context.Cause(ctx)
	}
}

type pgListener struct {
	subscription *subscription
	id           string
	woken        chan struct{}
}

func (b *pgListener) Woken() <-chan struct{} { return b.woken }

func (b *pgListener) Close() error {
	b.subscription.remove(b)
	return nil
}

const (
	pollEvery   = time.Second      // how often listeners are woken without notifications
	listenAgain = 5 * time.Second  // pause before another attempt to get notifications
	listenCheck = 30 * time.Second // how often a connection with notifications is checked
)

// errCrowded says that the server's connections are needed for more important work than notifications.
var errCrowded = errors.New("the server has few free connections")

// A subscription gets the notifications of the space on a connection of its own, while there is a listener. If the
// server has no connection to spare, or a pooler shares them, it wakes the listeners from time to time instead.
// When notifications begin again it wakes every listener, because wake-ups may have been missed.
type subscription struct {
	p *Postgres

	mu        sync.Mutex
	listeners map[string][]*pgListener
	tried     chan struct{} // closed once notifications began or failed; nil: nothing runs
	closed    bool
	none      chan struct{} // signaled when the last listener was removed
	ctx       context.Context
	stop      context.CancelFunc
	done      sync.WaitGroup
}

func newSubscription(p *Postgres) *subscription {
	l := &subscription{p: p, listeners: map[string][]*pgListener{}, none: make(chan struct{}, 1)}
	l.ctx, l.stop = context.WithCancel(context.Background())
	return l
}

// add registers a listener. The returned channel is closed when it can be woken.
func (l *subscription) add(b *pgListener) (<-chan struct{}, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errClosed
	}
	l.listeners[b.id] = append(l.listeners[b.id], b)
	if l.tried == nil {
		tried := make(chan struct{})
		l.tried = tried
		l.done.Go(func() { l.run(sync.OnceFunc(func() { close(tried) })) })
	}
	return l.tried, nil
}

func (l *subscription) remove(b *pgListener) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listeners[b.id] = slices.DeleteFunc(l.listeners[b.id], func(o *pgListener) bool { return o == b })
	if len(l.listeners[b.id]) == 0 {
		delete(l.listeners, b.id)
	}
	if len(l.listeners) == 0 {
		select {
		case l.none <- struct{}{}:
		default:
		}
	}
}

// unused reports whether there is no listener. If there is none, the next listener starts a new
// session.
func (l *subscription) unused() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.listeners) == 0 {
		l.tried = nil
	}
	return l.tried == nil
}

// wake wakes the listeners of some ids.
func (l *subscription) wake(ids []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		for _, b := range l.listeners[id] {
			select {
			case b.woken <- struct{}{}:
			default:
			}
		}
	}
}

func (l *subscription) wakeAll() {
	l.mu.Lock()
	ids := slices.Collect(maps.Keys(l.listeners))
	l.mu.Unlock()
	l.wake(ids)
}

// run wakes listeners until there is none for some time, or the store closes. It calls tried after the first
// attempt to get notifications.
func (l *subscription) run(tried func()) {
	defer tried()
	var next time.Time // of the next attempt to get notifications
	for begin := tried; ; begin = l.wakeAll {
		if !l.p.pooled && !l.p.isCrowded() && !time.Now().Before(next) {
			l.session(begin)
			next = time.Now().Add(listenAgain)
		}
		tried()
		select {
		case <-l.ctx.Done():
			return
		case <-time.After(pollEvery):
		}
		if l.unused() {
			return
		}
		l.wakeAll()
	}
}

// session gets notifications until the connection fails, the server needs it, or no listener is left. The
// caller polls after any error. It calls begin when notifications begin.
func (l *subscription) session(begin func()) error {
	pooled, err := l.p.pool.Acquire(l.ctx)
	if err != nil {
		return err
	}
	conn := pooled.Hijack()
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		conn.Close(ctx)
	}()
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	l.done.Go(func() { l.endUnused(ctx, cancel) })
	if err := l.check(ctx, conn, "LISTEN "+pgx.Identifier{l.p.channel()}.Sanitize()); err != nil {
		return err
	}
	begin()
	for {
		wait, stop := context.WithTimeout(ctx, listenCheck)
		n, err := conn.WaitForNotification(wait)
		stop()
		switch {
		case err == nil:
			l.wake([]string{n.Payload})
		case ctx.Err() != nil || wait.Err() == nil || conn.IsClosed():
			return err
		default:
			if err := l.check(ctx, conn, `SELECT 1`); err != nil {
				return err
			}
		}
	}
}

// endUnused ends a session that has had no listener for pollEvery.
func (l *subscription) endUnused(ctx context.Context, end func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.none:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pollEvery):
		}
		l.mu.Lock()
		left := len(l.listeners)
		l.mu.Unlock()
		if left == 0 {
			end()
			return
		}
	}
}

// check runs a statement, and reports whether the connection still works and the server can spare it.
func (l *subscription) check(ctx context.Context, conn *pgx.Conn, first string) error {
	ctx, cancel := context.WithTimeout(ctx, l.p.opt.Busy)
	defer cancel()
	s := l.p.session(ctx, conn)
	s.exec(first)
	crowded := false
	err := s.query(`SELECT `+crowdedSQL, nil, func(scan func(...any) error) error { return scan(&crowded) })
	if err == nil && crowded {
		l.p.noteCrowded()
		err = errCrowded
	}
	return err
}

func (l *subscription) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.stop()
	l.done.Wait()
}
