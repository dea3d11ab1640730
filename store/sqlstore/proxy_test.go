package sqlstore

import (
	"context"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// A fault says how the proxy treats the next message from a client.
type fault struct {
	forward bool          // the server gets the message and answers, but the client never receives the answer
	late    chan struct{} // the client is disconnected at once, and the server gets the message when this is closed
}

// A proxy forwards connections between stores and the server, and breaks them on request.
type proxy struct {
	t      *testing.T
	target string
	ln     net.Listener
	work   sync.WaitGroup

	mu    sync.Mutex
	armed []fault
	links map[*link]struct{}
	down  bool

	trips, accepted int    // answers that clients waited for, and connections
	pause           func() // called before each answer is passed on; nil: nothing
}

type link struct {
	client, server net.Conn
	swallow        chan struct{} // closed: the next answer of the server ends the link
	asking         bool          // the client sent something since the last answer
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	u, err := url.Parse(postgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, target: u.Host, ln: ln, links: map[*link]struct{}{}}
	p.work.Go(p.accept)
	t.Cleanup(func() {
		ln.Close()
		p.cut()
		p.work.Wait()
	})
	return p
}

// through returns a site whose stores connect through the proxy.
func (p *proxy) through(s site) site {
	u, err := url.Parse(s.where)
	if err != nil {
		p.t.Fatal(err)
	}
	u.Host = p.ln.Addr().String()
	s.where = u.String()
	return s
}

func (p *proxy) accept() {
	for {
		client, err := p.ln.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			client.Close()
			continue
		}
		l := &link{client: client, server: server, swallow: make(chan struct{})}
		p.mu.Lock()
		refuse := p.down
		if !refuse {
			p.links[l] = struct{}{}
			p.accepted++
		}
		p.mu.Unlock()
		if refuse {
			client.Close()
			server.Close()
			continue
		}
		p.work.Go(func() { p.up(l) })
		p.work.Go(func() { p.back(l) })
	}
}

func (p *proxy) up(l *link) {
	defer p.end(l)
	buf := make([]byte, 1<<16)
	for {
		n, err := l.client.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		if !l.asking {
			l.asking = true
			p.trips++
		}
		p.mu.Unlock()
		f, ok := p.trigger()
		switch {
		case !ok:
		case f.forward:
			close(l.swallow)
		case f.late != nil:
			l.client.Close()
			<-f.late
			close(l.swallow) // first, so that back drops the answer and ends the link
			l.server.Write(buf[:n])
			l.server.Read(buf) // the answer, or EOF
			return
		default:
			return
		}
		if _, err := l.server.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (p *proxy) back(l *link) {
	buf := make([]byte, 1<<16)
	for {
		n, err := l.server.Read(buf)
		if err != nil {
			l.client.Close()
			return
		}
		p.mu.Lock()
		l.asking = false
		pause := p.pause
		p.mu.Unlock()
		select {
		case <-l.swallow:
			p.end(l)
			return
		default:
		}
		if pause != nil {
			pause()
		}
		if _, err := l.client.Write(buf[:n]); err != nil {
			return // a late message may still have to reach the server
		}
	}
}

func (p *proxy) end(l *link) {
	l.client.Close()
	l.server.Close()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

func (p *proxy) trigger() (fault, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.armed) == 0 {
		return fault{}, false
	}
	f := p.armed[0]
	p.armed = p.armed[1:]
	return f, true
}

// arm sets the fault for the next client that sends a message.
func (p *proxy) arm(f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = append(p.armed, f)
}

// refuse makes the proxy refuse new connections, or accept them again.
func (p *proxy) refuse(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
}

// pauses sets a function that is called while an answer is under way.
func (p *proxy) pauses(during func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pause = during
}

// cut ends every connection.
func (p *proxy) cut() {
	p.mu.Lock()
	links := p.links
	p.links = map[*link]struct{}{}
	p.mu.Unlock()
	for l := range links {
		l.client.Close()
		l.server.Close()
	}
}

// ask queries the server directly, without the store or the proxy.
func ask[T any](t testing.TB, sql string, args ...any) (out T) {
	t.Helper()
	conn := foreign(t)
	defer conn.Close(context.Background())
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&out); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return out
}

func foreign(t testing.TB) *pgx.Conn {
	t.Helper()
	return foreignTo(t, postgresURL(t))
}

func foreignTo(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	cfg.RuntimeParams["search_path"] = schemaName
	conn, err := pgx.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// ended waits until at most the given number of connections is left.
func (p *proxy) ended(but int) {
	for {
		p.mu.Lock()
		n := len(p.links)
		p.mu.Unlock()
		if n <= but {
			return
		}
		select {
		case <-p.t.Context().Done():
			return
		case <-time.After(time.Millisecond):
		}
	}
}
