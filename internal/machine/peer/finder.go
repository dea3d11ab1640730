package peer

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
)

// A ConfinedError reports that a connection comes from a process in a sandbox.
type ConfinedError struct{ PID int }

func (e *ConfinedError) Error() string {
	return fmt.Sprintf("process %d runs in a sandbox", e.PID)
}

// An UnseenError reports that the process at the other end of a connection cannot be found.
type UnseenError struct{ Reason string }

func (e *UnseenError) Error() string {
	return "cannot see which process made this connection: " + e.Reason
}

// A Finder finds the processes at the other ends of connections. Its zero value is ready
// to use.
type Finder struct {
	scanning sync.Mutex // held during a scan

	mu   sync.Mutex
	next *scan // the scan that new connections join; nil: none is waiting to start
}

// A pair is a connection as its client sees it.
type pair struct{ local, remote netip.AddrPort }

// A scan is one pass over /proc for all connections that arrived before it started.
type scan struct {
	wanted map[pair]bool
	done   chan struct{} // closed when found and err are set
	found  map[pair]socket
	err    error
}

// A socket is the client's end of a connection on this machine.
type socket struct {
	uid     int
	inode   uint64 // 0: the client has closed the socket
	holders []holder
}

// A holder is a process that has a socket open.
type holder struct {
	pid    int
	marked bool
}

// Check returns nil if the client of an accepted connection is admitted. It returns a
// *ConfinedError if the client runs in a sandbox, and an *UnseenError if it may.
func (f *Finder) Check(ctx context.Context, accepted net.Conn) error {
	client, err := addressOf(accepted.RemoteAddr())
	if err != nil {
		return err
	}
	server, err := addressOf(accepted.LocalAddr())
	if err != nil {
		return err
	}
	p := pair{local: client, remote: server}
	found, err := f.find(ctx, p)
	if err != nil {
		return &UnseenError{Reason: err.Error()}
	}
	s, here := found[p]
	if !here {
		return checkAbsent(client.Addr(), server.Addr())
	}
	return s.check()
}

func addressOf(a net.Addr) (netip.AddrPort, error) {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, &UnseenError{Reason: a.Network() + " is not TCP"}
	}
	at := tcp.AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port()), nil
}

// find looks for a connection in a scan that starts after the call.
func (f *Finder) find(ctx context.Context, p pair) (map[pair]socket, error) {
	f.mu.Lock()
	l := f.next
	first := l == nil
	if first {
		l = &scan{wanted: map[pair]bool{}, done: make(chan struct{})}
		f.next = l
	}
	l.wanted[p] = true
	f.mu.Unlock()
	if first {
		f.run(l)
	}
	select {
	case <-l.done:
		return l.found, l.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// run runs a scan when the previous one has ended.
func (f *Finder) run(l *scan) {
	f.scanning.Lock()
	defer f.scanning.Unlock()
	f.mu.Lock()
	f.next = nil // later connections join the next scan
	f.mu.Unlock()
	l.found, l.err = findSockets(l.wanted)
	close(l.done)
}
