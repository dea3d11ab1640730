package peer

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// accepted returns a connection from a client that ran these steps.
func accepted(t *testing.T, listen, steps string) net.Conn {
	t.Helper()
	l, err := net.Listen("tcp", listen)
	if err != nil {
		t.Skip(err)
	}
	defer l.Close()
	cmd := exec.Command("/proc/self/exe", clientArg, steps, l.Addr().String())
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	t.Cleanup(func() {
		in.Close()
		cmd.Wait() // a grandchild ends when its input ends
	})
	if line, _ := bufio.NewReader(r).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the client said %q", line)
	}
	l.(*net.TCPListener).SetDeadline(time.Now().Add(time.Minute))
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

type verdict string

const (
	admitted verdict = "admitted"
	confined verdict = "confined"
	unseen   verdict = "unseen"
)

func verdictOf(t *testing.T, err error) verdict {
	t.Helper()
	var c *ConfinedError
	var u *UnseenError
	switch {
	case err == nil:
		return admitted
	case errors.As(err, &c):
		return confined
	case errors.As(err, &u):
		return unseen
	}
	t.Fatal(err)
	return ""
}

// A connection from a sandbox is recognized, however it was made.
func TestVerdicts(t *testing.T) {
	root := os.Geteuid() == 0
	for _, c := range []struct {
		name, listen, steps string
		want                verdict
		only                string // "root" or "user"
	}{
		{"a person", "127.0.0.1:0", "connect", admitted, ""},
		{"a person, IPv6", "[::1]:0", "connect", admitted, ""},
		{"a person, an address for all", "0.0.0.0:0", "connect", admitted, ""},
		{"a person, IPv4 in IPv6", "127.0.0.1:0", "mapped,connect", admitted, ""},
		{"a person, multipath", "127.0.0.1:0", "mptcp,connect", admitted, ""},
		{"an agent", "127.0.0.1:0", "mark,connect", confined, ""},
		{"an agent, IPv6", "[::1]:0", "mark,connect", confined, ""},
		{"an agent, IPv4 in IPv6", "127.0.0.1:0", "mark,mapped,connect", confined, ""},
		{"an agent, multipath", "127.0.0.1:0", "mark,mptcp,connect", confined, ""},
		{"an agent, fast open", "127.0.0.1:0", "mark,fastopen,connect", confined, ""},
		{"a child of an agent", "127.0.0.1:0", "mark,fork,connect", confined, ""},
		{"a daemon of an agent, after its parents", "127.0.0.1:0", "mark,fork,detach,connect", confined, ""},
		{"a sandbox in a sandbox", "127.0.0.1:0", "mark,fork,mark,connect", confined, ""},
		{"a closed socket", "127.0.0.1:0", "connect,close", unseen, ""},
		{"a closed socket of an agent", "127.0.0.1:0", "mark,connect,close", unseen, ""},
		{"a socket in flight", "127.0.0.1:0", "mark,connect,flight", unseen, ""},
		{"a thread with its own descriptors", "127.0.0.1:0", "mark,fork,thread", unseen, ""},
		{"a secretive agent", "127.0.0.1:0", "mark,connect,secret", unseen, "user"},
		{"a secretive agent, seen by root", "127.0.0.1:0", "mark,connect,secret", confined, "root"},
		{"another user", "127.0.0.1:0", "nobody,connect", admitted, "root"},
		{"an agent as another user", "127.0.0.1:0", "mark,nobody,connect", confined, "root"},
		{"an agent that gives its socket away", "127.0.0.1:0", "mark,connect,chown", confined, "root"},
	} {
		if c.only == "root" && !root || c.only == "user" && root {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			conn := accepted(t, c.listen, c.steps)
			if c.steps == "connect,close" || c.steps == "mark,connect,close" {
				awaitEnd(t, conn)
			}
			if got := verdictOf(t, new(Finder).Check(t.Context(), conn)); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// awaitEnd waits until the other end is closed.
func awaitEnd(t *testing.T, c net.Conn) {
	t.Helper()
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Fatal("the connection is not closed")
	}
}

// A lowered limit cannot be raised again, which makes it a mark.
func TestMarkStays(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may raise limits until a sandbox takes that from it, which the escape suite tries")
	}
	cmd := exec.Command("sh", "-c", "ulimit -x 100 && ulimit -x 101")
	if cmd.Run() == nil {
		t.Error("a hard limit was raised")
	}
}

// addresses is a fake connection that has only addresses.
type addresses struct {
	net.Conn
	local, remote string
}

func (a addresses) LocalAddr() net.Addr  { return tcp(a.local) }
func (a addresses) RemoteAddr() net.Addr { return tcp(a.remote) }

func tcp(text string) net.Addr {
	a, err := net.ResolveTCPAddr("tcp", text)
	if err != nil {
		panic(err)
	}
	return a
}

func TestAddresses(t *testing.T) {
	own := "127.0.0.1:1"
	list, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		if n := a.(*net.IPNet); !n.IP.IsLinkLocalUnicast() {
			own = net.JoinHostPort(n.IP.String(), "1")
		}
	}
	for remote, want := range map[string]verdict{
		"192.0.2.7:80": admitted, "[2001:db8::7]:80": admitted, // other machines
		"127.0.0.1:1": unseen, "127.9.9.9:1": unseen, "[::1]:1": unseen, "[::ffff:127.0.0.1]:1": unseen, own: unseen,
	} {
		err := new(Finder).Check(t.Context(), addresses{local: "127.0.0.1:2", remote: remote})
		if got := verdictOf(t, err); got != want {
			t.Errorf("%s: %s, want %s", remote, got, want)
		}
	}
	pipe, other := net.Pipe()
	defer pipe.Close()
	defer other.Close()
	if got := verdictOf(t, new(Finder).Check(t.Context(), pipe)); got != unseen {
		t.Errorf("a pipe: %s", got)
	}
}

// Connections that arrive together share scans, and each gets its own verdict.
func TestManyAtOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	agent := accepted(t, "127.0.0.1:0", "mark,connect")
	var f Finder
	var all sync.WaitGroup
	for range 100 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		s, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		all.Go(func() {
			if err := f.Check(t.Context(), s); err != nil {
				t.Error(err)
			}
			if got := verdictOf(t, f.Check(t.Context(), agent)); got != confined {
				t.Error(got)
			}
		})
	}
	all.Wait()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if f.next != nil {
		t.Error("a scan was left over")
	}
	_ = f.Check(ended, agent) // must return, with any result
}

func TestLimitsAreRead(t *testing.T) {
	for text, want := range map[string]uint64{
		limitName + "            unlimited            unlimited            locks     \n": ^uint64(0),
		"x\n" + limitName + "            5            1048576              locks     \n": 1 << 20,
	} {
		if got, err := limitIn([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %d %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "Max file size 1 2\n", limitName + "\n", limitName + " a b\n"} {
		if _, err := limitIn([]byte(text)); err == nil {
			t.Errorf("%q was parsed as a limit", text)
		}
	}
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_LOCKS, &own); err != nil {
		t.Fatal(err)
	}
	if got, err := ownLimit(); err != nil || got != own.Max {
		t.Errorf("%d %v, want %d", got, err, own.Max)
	}
}

func TestAddressesOfTheKernel(t *testing.T) {
	for _, text := range []string{"", "0100007F", "0100007F:", "0100007:0050", "zz00007F:0050", "0100007F:10000", strings.Repeat("0", 24) + ":0050"} {
		if a, err := parseAddress(text); err == nil {
			t.Errorf("%q is %s", text, a)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	s, err := l.Accept()
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var f Finder
	for b.Loop() {
		if err := f.Check(b.Context(), s); err != nil {
			b.Fatal(err)
		}
	}
}
