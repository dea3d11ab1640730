//go:build !nopostgres

package sqlstore

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// hostGrace is how long a host of several may take to answer before the others are tried.
const hostGrace = 300 * time.Millisecond

// raceHosts makes the driver leave out a host that does not answer while another host does. The driver tries one
// host after the other, each for its whole time limit.
func raceHosts(c *pgx.ConnConfig) {
	addresses := map[string]bool{}
	add := func(host string, port uint16) {
		if host != "" && host[0] != '/' {
			addresses[net.JoinHostPort(host, strconv.Itoa(int(port)))] = true
		}
	}
	add(c.Host, c.Port)
	for _, f := range c.Fallbacks {
		add(f.Host, f.Port)
	}
	if len(addresses) < 2 {
		return
	}
	r := &hostRace{dial: c.DialFunc, silent: map[string]time.Time{}}
	for a := range addresses {
		r.addresses = append(r.addresses, a)
	}
	c.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil } // the dialer looks it up
	c.DialFunc = r.connect
}

type hostRace struct {
	dial      func(ctx context.Context, network, address string) (net.Conn, error)
	addresses []string

	mu     sync.Mutex
	silent map[string]time.Time // hosts that did not answer, and until when they are not tried while others answer
}

// silentFor is how long a host that did not answer is left out.
const silentFor = 30 * time.Second

var errSilent = errors.New("the host does not answer, and another one does")

// connect connects to one host. If it does not answer soon and another host does, connect gives up.
func (r *hostRace) connect(ctx context.Context, network, address string) (net.Conn, error) {
	if network == "unix" {
		return r.dial(ctx, network, address)
	}
	r.mu.Lock()
	left := time.Now().Before(r.silent[address])
	r.mu.Unlock()
	if left {
		return nil, errSilent
	}
	type result struct {
		conn net.Conn
		err  error
	}
	answer, other := make(chan result, 1), make(chan struct{}, len(r.addresses))
	var dials sync.WaitGroup
	defer dials.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dials.Go(func() {
		conn, err := r.dial(ctx, network, address)
		answer <- result{conn, err}
	})
	late := time.NewTimer(hostGrace)
	defer late.Stop()
	for {
		select {
		case got := <-answer:
			return got.conn, got.err
		case <-late.C:
			for _, a := range r.addresses {
				if a != address {
					dials.Go(func() {
						if conn, err := r.dial(ctx, network, a); err == nil {
							conn.Close()
							other <- struct{}{}
						}
					})
				}
			}
		case <-other:
			cancel()
			if got := <-answer; got.err == nil { // just in time
				return got.conn, nil
			}
			r.mu.Lock()
			r.silent[address] = time.Now().Add(silentFor)
			r.mu.Unlock()
			return nil, errSilent
		}
	}
}
