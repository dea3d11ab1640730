package escape

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Named sockets that the test listens on, with the services that they imitate.
const (
	homeSocket     = "a socket in ~"
	agentSocket    = "the agent of ssh"
	busSocket      = "the bus of the session"
	abstractSocket = "a socket with an abstract name"
)

func socketAttempts() (list []attempt) {
	dialer := &net.Dialer{Timeout: hung}
	several := &net.Dialer{Timeout: hung}
	several.SetMultipathTCP(true)
	for i := range 2 {
		family := []string{"IPv4", "IPv6"}[i]
		ask := func(name string, dial func(ctx context.Context, network, address string) (net.Conn, error), proof func(w *world, r *http.Request)) {
			list = append(list, attempt{name: "act as an admin at the server: " + name + ", " + family, try: func(w *world) error {
				if len(w.Servers) <= i {
					return errors.New("no such server")
				}
				return askServer(w, w.Servers[i], dial, proof)
			}})
		}
		ask("a token", dialer.DialContext, withToken)
		ask("a session", dialer.DialContext, withSession)
		ask("Multipath TCP", several.DialContext, withToken)
		ask("TCP Fast Open", dialFast, withToken)
	}
	list = append(list, attempt{name: "act as an admin at the server: a daemon", try: func(*world) error { return asDaemon(list[0].name) }})
	for name, variable := range map[string]string{homeSocket: "", abstractSocket: "", agentSocket: "SSH_AUTH_SOCK", busSocket: "DBUS_SESSION_BUS_ADDRESS"} {
		list = append(list, attempt{name: "connect to " + name, try: func(w *world) error { return w.enter(w.Sockets[name]) }, open: func(l level) string {
			switch {
			case name == abstractSocket && l.lacks == landlock:
				return "names of abstract sockets belong to the network, which is shared"
			case name != abstractSocket && l.alone():
				return "Landlock has no rule for connecting to a socket"
			}
			return ""
		}})
		if variable != "" {
			list = append(list, attempt{name: "find " + name + " in $" + variable, try: func(w *world) error {
				return w.enter(strings.TrimPrefix(os.Getenv(variable), "unix:path="))
			}, moot: always("no command of a run is given it")})
		}
	}
	return append(list, attempt{name: "see all packets of this machine", root: true, try: func(*world) error {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, int(htons(unix.ETH_P_ALL)))
		if err != nil {
			return err
		}
		return unix.Close(fd)
	}})
}

// asDaemon makes an attempt in a process that has left its session, its parent and its
// environment.
func asDaemon(name string) error {
	if err := os.Symlink(agentFile, attemptName); err != nil {
		return err
	}
	defer os.Remove(attemptName)
	cmd := exec.Command("/bin/sh", "-c", `setsid env -i "$PWD/$0" "$1" &`, attemptName, name)
	out, err := cmd.Output() // ends with the daemon, which has the same standard output
	if err == nil && len(out) > 0 {
		err = errors.New(string(out))
	}
	return err
}

func htons(n uint16) uint16 { return n<<8 | n>>8 }

func withToken(w *world, r *http.Request)   { r.Header.Set("Authorization", "Bearer "+w.Token) }
func withSession(w *world, r *http.Request) { r.Header.Set("Cookie", w.Cookie) }

// askServer asks the server for the identity of the client.
func askServer(w *world, server string, dial func(ctx context.Context, network, address string) (net.Conn, error), proof func(w *world, r *http.Request)) error {
	r, err := http.NewRequest("GET", server+"/api/v1/me", nil)
	if err != nil {
		return err
	}
	proof(w, r)
	transport := &http.Transport{DialContext: dial}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: hung}
	a, err := client.Do(r)
	for range 5 { // the server closes a connection whose client is late, as on a busy machine
		if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
			break
		}
		a, err = client.Do(r)
	}
	if err != nil {
		return err
	}
	defer a.Body.Close()
	said, err := io.ReadAll(a.Body)
	if err == nil && (a.StatusCode != http.StatusOK || !strings.Contains(string(said), `"role":"admin"`)) {
		err = fmt.Errorf("%d: %s", a.StatusCode, said)
	}
	return err
}

// dialFast connects with TCP Fast Open, for which Landlock has no rule.
func dialFast(_ context.Context, _, address string) (net.Conn, error) {
	at, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, err
	}
	var to unix.Sockaddr
	family := unix.AF_INET
	if ip := at.IP.To4(); ip != nil {
		to = &unix.SockaddrInet4{Port: at.Port, Addr: [4]byte(ip)}
	} else {
		family, to = unix.AF_INET6, &unix.SockaddrInet6{Port: at.Port, Addr: [16]byte(at.IP.To16())}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "fast")
	defer f.Close()
	if err := uninterrupted(func() error { return unix.Sendto(fd, nil, unix.MSG_FASTOPEN, to) }); err != nil {
		return nil, err
	}
	return net.FileConn(f)
}

// enter connects to a socket of the test, which sends the secret.
func (w *world) enter(name string) error {
	if name == "" {
		return syscall.ENOENT
	}
	c, err := net.DialTimeout("unix", name, hung)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(hung)); err != nil {
		return err
	}
	text := make([]byte, 4096)
	n, err := c.Read(text)
	return w.find(text[:n], err)
}
