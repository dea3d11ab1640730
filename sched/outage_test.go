package sched_test

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/sched"
	"lockkeeper/store"
)

// An outlet is a connection to a server that a test can cut.
type outlet struct {
	mu    sync.Mutex
	to    string
	cut   bool
	conns []net.Conn
	done  sync.WaitGroup
	in    net.Listener
}

func newOutlet(t *testing.T, to string) *outlet {
	in, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	o := &outlet{to: to, in: in}
	o.done.Go(func() {
		for {
			c, err := in.Accept()
			if err != nil {
				return
			}
			o.mu.Lock()
			if o.cut {
				c.Close()
			} else if s, err := net.Dial("tcp", to); err != nil {
				c.Close()
			} else {
				o.conns = append(o.conns, c, s)
				o.done.Go(func() { io.Copy(s, c); s.Close() })
				o.done.Go(func() { io.Copy(c, s); c.Close() })
			}
			o.mu.Unlock()
		}
	})
	return o
}

func (o *outlet) set(cut bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cut = cut
	for _, c := range o.conns {
		c.Close()
	}
	o.conns = nil
}

// If the server is down when work ends, the worker reports the end once the server is back.
//
// shows: SW-53 SW-74
func TestOutageAtTheEnd(t *testing.T) {
	s := shop{Kind: "PostgreSQL"}
	s.create(t)
	u, err := url.Parse(s.Where)
	must(t, err)
	o := newOutlet(t, u.Host)
	u.Host = o.in.Addr().String()
	s.Where = u.String()
	st, err := s.open(t.Context())
	must(t, err)
	y := &yard{t: t, store: st, locks: lock.New(st, lock.Options{})}
	y.queue, err = newQueue(st, y.locks, sched.Options{})
	must(t, err)
	it := y.enqueue(sched.ItemSpec{Workflow: "x", Locks: writes("p")})
	next := y.enqueue(sched.ItemSpec{Workflow: "next", Locks: writes("p")})
	began := time.Now()
	w, err := y.queue.Start(t.Context(), sched.WorkerOptions{Slots: 1, Node: "here", Run: func(_ context.Context, job *sched.Job) error {
		if job.Item.ID == it.ID {
			o.set(true)
			time.AfterFunc(8*time.Second, func() { o.set(false) })
		}
		return nil
	}, OnError: func(err error) { t.Log(time.Since(began).Round(time.Millisecond), err) }})
	must(t, err)
	done := func() bool {
		var c store.Census
		err := st.View(t.Context(), func(r store.Reader) (err error) {
			c, err = r.Census()
			return err
		})
		return err == nil && c.Queued()+c.Running == 0 // while the server is down, the count is unknown
	}
	waitFor(t, done)
	for _, id := range []string{it.ID, next.ID} {
		if now := y.item(id); now.Status != lockkeeper.ItemCompleted || now.Attempts != 1 {
			t.Errorf("%s is %s after %d attempts", now.Workflow, now.Status, now.Attempts)
		}
	}
	must(t, w.Close(), y.locks.Close(), st.Close(), o.in.Close())
	o.set(true)
	o.done.Wait()
}
