//go:build !nopostgres

package sqlstore

import (
	"cmp"
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

// notify wakes listeners after the commit, because a NOTIFY inside the transaction would
// serialize the commits of all spaces. It ignores the caller's cancellation, because the change
// is committed. It ignores errors, because listeners also poll.
func (p *Postgres) notify(ctx context.Context, ids []string) {
	if len(ids) == 0 {
		return
	}
	p.listen.wake(ids...) // listeners in this process need not wait for the server
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	p.pool.Exec(ctx, `SELECT pg_notify($1, id) FROM unnest($2::text[]) AS id`, p.channel(), ids)
}

func (p *Postgres) Listen(ctx context.Context, id string) (store.Listener, error) {
	b := &pgListener{subscription: p.listen, id: id, woken: make(chan struct{}, 1)}
	if err := p.listen.add(ctx, b); err != nil {
		return nil, p.explain(ctx, err)
	}
	return b, nil
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

// A subscription opens its own connection for the first listener. After a reconnect it wakes
// every listener, because wake-ups may have been missed.
type subscription struct {
	cfg     *pgx.ConnConfig
	channel string

	mu        sync.Mutex
	listeners map[string][]*pgListener
	ready     chan struct{} // closed once listening; nil while there is no listener
	failed    error         // why listening never began
	closed    bool
	stop      context.CancelFunc
	done      sync.WaitGroup
}

func newSubscription(cfg *pgx.ConnConfig, channel string) *subscription {
	return &subscription{cfg: cfg, channel: channel, listeners: map[string][]*pgListener{}}
}

// add registers a listener and returns once it can be woken.
func (l *subscription) add(ctx context.Context, b *pgListener) error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return errClosed
	}
	l.listeners[b.id] = append(l.listeners[b.id], b)
	if l.ready == nil {
		run, stop := context.WithCancel(context.Background())
		l.ready, l.stop, l.failed = make(chan struct{}), stop, nil
		ready := l.ready
		l.done.Go(func() { l.run(run, ready) })
	}
	ready := l.ready
	l.mu.Unlock()
	select {
	case <-ready:
	case <-ctx.Done():
		l.remove(b)
		return context.Cause(ctx)
	}
	l.mu.Lock()
	err := l.failed
	l.mu.Unlock()
	if err != nil {
		l.remove(b)
	}
	return err
}

func (l *subscription) remove(b *pgListener) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listeners[b.id] = slices.DeleteFunc(l.listeners[b.id], func(o *pgListener) bool { return o == b })
	if len(l.listeners[b.id]) == 0 {
		delete(l.listeners, b.id)
	}
}

// wake wakes the listeners of some ids, or of all ids if none is given.
func (l *subscription) wake(ids ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(ids) == 0 {
		ids = slices.Collect(maps.Keys(l.listeners))
	}
	for _, id := range ids {
		for _, b := range l.listeners[id] {
			select {
			case b.woken <- struct{}{}:
			default:
			}
		}
	}
}

// run listens until it is stopped. It gives up only if the first attempt fails.
func (l *subscription) run(ctx context.Context, ready chan struct{}) {
	first := true
	for ctx.Err() == nil {
		err := l.session(ctx, func() {
			if first {
				close(ready)
				first = false
			} else {
				l.wake()
			}
		})
		if first {
			l.giveUp(ready, cmp.Or(err, errClosed))
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
	if first {
		l.giveUp(ready, errClosed)
	}
}

// giveUp tells the waiters for the first connection that it failed.
func (l *subscription) giveUp(ready chan struct{}, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed, l.ready = why, nil
	close(ready)
}

// session listens on one connection until the connection fails.
func (l *subscription) session(ctx context.Context, listening func()) error {
	conn, err := pgx.ConnectConfig(ctx, l.cfg.Copy())
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		conn.Close(ctx)
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{l.channel}.Sanitize()); err != nil {
		return err
	}
	listening()
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		}
		l.wake(n.Payload)
	}
}

func (l *subscription) close() {
	l.mu.Lock()
	l.closed = true
	stop := l.stop
	l.mu.Unlock()
	if stop != nil {
		stop()
	}
	l.done.Wait()
}
