package peer

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
)

// Unmarked is the lowest limit on file locks of a process without a mark. Package process
// keeps numbers of its own in the limit, from Unmarked on; a mark clears that bit of them.
const Unmarked = 1 << 62

// A ConfinedError says that a connection comes out of a sandbox.
type ConfinedError struct{ PID int }

func (e *ConfinedError) Error() string {
	return fmt.Sprintf("process %d runs in a sandbox", e.PID)
}

// An UnseenError says that the process at the other end of a connection cannot be found.
type UnseenError struct{ Reason string }

func (e *UnseenError) Error() string {
	return "cannot see which process made this connection: " + e.Reason
}

// A Finder finds the processes at the other ends of connections. Its zero value is ready.
type Finder struct {
	looking sync.Mutex // held during a look

	mu   sync.Mutex
	next *look // has not begun yet; nil: nobody waits for one
}

// A pair is a connection as its client sees it.
type pair struct{ local, remote netip.AddrPort }

// A look answers for all connections that arrived before it began.
type look struct {
	wanted map[pair]bool
	done   chan struct{} // closed once the rest is set
	found  map[pair]socket
	err    error
}

// A socket is the client's end of a connection on this machine.
type socket struct {
	uid     int
	inode   uint64 // 0: the client has closed it
	holders []holder
}

// A holder is a process that has a socket open.
type holder struct {
	pid    int
	marked bool
}

// Check returns nil if the other end of an accepted connection is not in a sandbox, else a
// *ConfinedError or an *UnseenError.
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

// find looks for a connection, in a look that begins after the call.
func (f *Finder) find(ctx context.Context, p pair) (map[pair]socket, error) {
	f.mu.Lock()
	l := f.next
	first := l == nil
	if first {
		l = &look{wanted: map[pair]bool{}, done: make(chan struct{})}
		f.next = l
	}
	l.wanted[p] = true
	f.mu.Unlock()
	if first {
		f.begin(l)
	}
	select {
	case <-l.done:
		return l.found, l.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// begin carries out a look once the one before it has ended.
func (f *Finder) begin(l *look) {
	f.looking.Lock()
	defer f.looking.Unlock()
	f.mu.Lock()
	f.next = nil // whoever arrives from now on shares another
	f.mu.Unlock()
	l.found, l.err = findSockets(l.wanted)
	close(l.done)
}
