package peer

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// clientArg makes the test binary a client. Its steps and an address follow.
const clientArg = "@test-client"

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == clientArg {
		if err := client(strings.Split(os.Args[2], ","), os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, "client:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// client runs its steps, reports the connection, and holds it until its input ends.
func client(steps []string, address string) error {
	runtime.LockOSThread()
	network, dialer := "tcp", net.Dialer{}
	connect := func() (*os.File, error) {
		c, err := dialer.Dial(network, address)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		return c.(*net.TCPConn).File()
	}
	var open *os.File
	for i, step := range steps {
		var err error
		switch step {
		case "mark":
			err = Mark()
		case "fork", "detach": // the remaining steps run in a grandchild, which inherits only the mark
			cmd := exec.Command("/proc/self/exe", clientArg, strings.Join(steps[i+1:], ","), address)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
			if step == "fork" {
				return cmd.Run()
			}
			cmd.Env, cmd.SysProcAttr = []string{}, &syscall.SysProcAttr{Setsid: true}
			return cmd.Start()
		case "nobody":
			err = unix.Setuid(65534)
		case "mptcp":
			dialer.SetMultipathTCP(true)
		case "fastopen":
			connect = func() (*os.File, error) { return fastOpen(address) }
		case "mapped":
			network = "tcp6"
			address = strings.Replace(address, "127.0.0.1", "[::ffff:127.0.0.1]", 1)
			connect = func() (*os.File, error) { return mapped(address) }
		case "connect":
			open, err = connect()
		case "chown":
			err = open.Chown(1, 1)
		case "secret": // only root may inspect this process
			err = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
		case "flight": // the socket is in an unread message
			err = sendAway(open)
		case "thread": // the socket is in the private descriptor table of one thread
			err = inThread(func() error {
				if err := unix.Unshare(unix.CLONE_FILES); err != nil {
					return err
				}
				_, err := mapped(strings.Replace(address, "127.0.0.1", "[::ffff:127.0.0.1]", 1))
				return err
			})
		case "close":
			err = open.Close()
		default:
			err = fmt.Errorf("unknown step %q", step)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
	}
	fmt.Println("ready")
	var end [1]byte
	os.Stdin.Read(end[:])
	runtime.KeepAlive(open)
	return nil
}

func fastOpen(address string) (*os.File, error) {
	at, err := net.ResolveTCPAddr("tcp4", address)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, err
	}
	to := &unix.SockaddrInet4{Port: at.Port, Addr: [4]byte(at.IP.To4())}
	return os.NewFile(uintptr(fd), "fast"), unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, to)
}

func mapped(address string) (*os.File, error) {
	at, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "mapped"), unix.Connect(fd, &unix.SockaddrInet6{Port: at.Port, Addr: [16]byte(at.IP.To16())})
}

// inThread calls do in a thread that lives until the program ends.
func inThread(do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- do()
		select {}
	}()
	return <-done
}

// away is the socket pair over which sockets are sent.
var away [2]int

func sendAway(open *os.File) (err error) {
	if away, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0); err != nil {
		return err
	}
	if err := unix.Sendmsg(away[0], []byte("x"), unix.UnixRights(int(open.Fd())), nil, 0); err != nil {
		return err
	}
	return open.Close()
}
