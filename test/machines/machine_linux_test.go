//go:build machines

package machines

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// home is the home directory of the person on every machine, and project the clone in it. They
// have the same path everywhere, so a path never tells machines apart.
const (
	home    = "/root"
	project = home + "/project"
)

// A machine is a set of namespaces with a disk.
type machine struct {
	t      *testing.T
	name   string
	number int    // last byte of its address
	disk   string // its home directory and its part of /etc, as the suite sees them
	env    []string
	net    *network

	boot  *exec.Cmd
	ended chan struct{}
	ns    []int // descriptors, in the order in which a thread enters them

	mu      sync.Mutex
	running map[*command]bool
}

// addr returns the machine's address.
func (m *machine) addr() string { return fmt.Sprintf("10.77.0.%d", m.number) }

// newMachine creates the disk of a machine and starts it.
func newMachine(t *testing.T, n *network, dir, name string, number int) *machine {
	t.Helper()
	m := &machine{t: t, name: name, number: number, disk: filepath.Join(dir, name), net: n, env: variables(), running: map[*command]bool{}}
	for _, sub := range []string{"home", "etc", "work"} {
		must(t, os.MkdirAll(filepath.Join(m.disk, sub), 0o755))
	}
	must(t, os.WriteFile(filepath.Join(m.disk, "etc/machine-id"), []byte(hexID()+"\n"), 0o444))
	m.newBoot()
	m.start()
	t.Cleanup(m.kill)
	return m
}

// newBoot gives the machine another run of its kernel.
func (m *machine) newBoot() {
	id := hexID()
	id = strings.Join([]string{id[:8], id[8:12], id[12:16], id[16:20], id[20:]}, "-")
	must(m.t, os.WriteFile(filepath.Join(m.disk, "boot_id"), []byte(id+"\n"), 0o644))
}

// start starts the machine and plugs its card in.
func (m *machine) start() {
	m.t.Helper()
	cmd := exec.Command(filepath.Join(bin, initName), m.name, m.disk)
	cmd.Env, cmd.Stderr = m.env, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces}
	out, err := cmd.StdoutPipe()
	must(m.t, err, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "ready\n" {
		cmd.Process.Kill()
		cmd.Wait()
		m.t.Fatalf("machine %s did not start: %q, %v", m.name, line, err)
	}
	m.boot, m.ended = cmd, make(chan struct{})
	go func() {
		defer close(m.ended)
		cmd.Wait() // killed
	}()
	for _, name := range []string{"uts", "ipc", "net", "pid", "mnt"} { // mnt last: it changes /proc
		fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/%s", cmd.Process.Pid, name), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		must(m.t, err)
		m.ns = append(m.ns, fd)
	}
	must(m.t, m.net.plug(m))
	m.must("ip", "link", "set", "lo", "up")
	m.must("ip", "addr", "add", m.addr()+"/24", "dev", card)
	m.must("ip", "link", "set", card, "up")
}

// kill ends all processes of the machine at once, as a power failure does. Its disk stays.
func (m *machine) kill() {
	if m.boot == nil {
		return
	}
	m.boot.Process.Kill()
	<-m.ended
	m.mu.Lock()
	left := m.running
	m.running = map[*command]bool{}
	m.mu.Unlock()
	for c := range left {
		<-c.done
	}
	m.net.unplug(m)
	for _, fd := range m.ns {
		unix.Close(fd)
	}
	m.boot, m.ns = nil, nil
}

// enter moves the current thread into the namespaces of the machine. The thread must end with its
// goroutine.
func (m *machine) enter() error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	for _, fd := range m.ns {
		if err := unix.Setns(fd, 0); err != nil {
			return fmt.Errorf("enter machine %s: %w", m.name, err)
		}
	}
	return nil
}

// initMain is the first process of a machine. It makes the machine's view of the disks, and then
// waits for orphans until it is killed.
func initMain() int {
	name, disk := os.Args[1], os.Args[2]
	if err := settle(name, disk); err != nil {
		fmt.Fprintf(os.Stderr, "machine %s: %v\n", name, err)
		return 1
	}
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	fmt.Println("ready")
	for range children {
		for {
			if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); pid <= 0 && !errors.Is(err, unix.EINTR) {
				break
			}
		}
	}
	return 0
}

// settle mounts what a machine has of its own: a home, /etc, /tmp, /run, /dev/shm and /proc. It
// hides the disks of the other machines.
func settle(name, disk string) error {
	if os.Getpid() != 1 {
		return errors.New("not in a PID namespace of its own")
	}
	if err := unix.Sethostname([]byte(name)); err != nil {
		return err
	}
	open := func(path string) (string, error) { // a name that stays valid when the path is hidden
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		return fmt.Sprintf("/proc/self/fd/%d", fd), err
	}
	programs, err1 := open(bin)
	files, err2 := open(checked)
	boot, err3 := open(filepath.Join(disk, "boot_id"))
	etc := fmt.Sprintf("lowerdir=/etc,upperdir=%s/etc,workdir=%s/work", disk, disk)
	if err := errors.Join(err1, err2, err3, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")); err != nil {
		return err
	}
	type step struct {
		from, to, kind string
		flags          uintptr
		data           string
	}
	for _, s := range []step{
		{"overlay", "/etc", "overlay", 0, etc},
		{filepath.Join(disk, "home"), home, "", unix.MS_BIND, ""},
		{"tmpfs", disks, "tmpfs", 0, "mode=755"},
		{programs, bin, "", unix.MS_BIND, ""},
		{files, checked, "", unix.MS_BIND, ""},
		{"tmpfs", "/tmp", "tmpfs", 0, "mode=1777"},
		{"tmpfs", "/run", "tmpfs", 0, "mode=755"},
		{"tmpfs", "/dev/shm", "tmpfs", 0, "mode=1777"},
		{"proc", "/proc", "proc", 0, ""},
		{boot, "/proc/sys/kernel/random/boot_id", "", unix.MS_BIND, ""},
	} {
		if s.to == bin || s.to == checked {
			if err := os.Mkdir(s.to, 0o755); err != nil {
				return err
			}
		}
		if err := unix.Mount(s.from, s.to, s.kind, s.flags, s.data); err != nil {
			return fmt.Errorf("mount %s: %w", s.to, err)
		}
	}
	return nil
}

// write creates a file in the home directory of the machine.
func (m *machine) write(path, text string) {
	m.t.Helper()
	file := filepath.Join(m.disk, "home", path)
	must(m.t, os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644))
}

// read returns the content of a file in the home directory of the machine.
func (m *machine) read(path string) string {
	m.t.Helper()
	text, err := os.ReadFile(filepath.Join(m.disk, "home", path))
	must(m.t, err)
	return string(text)
}

// has reports whether a file exists in the home directory, by its path on the machine.
func (m *machine) has(path string) bool {
	_, err := os.Stat(filepath.Join(m.disk, "home", strings.TrimPrefix(path, home)))
	return err == nil
}
