package process

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// grope looks for a terminal in every place where a command could find one, and prints what it
// found.
func grope() int {
	if tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
		say("opened /dev/tty")
		tty.Close()
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		panic(err)
	}
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err == nil && (strings.HasPrefix(target, "/dev/pts/") || strings.HasPrefix(target, "/dev/tty")) {
			say("has %s open as %s", target, e.Name())
		}
	}
	key := byte('x')
	for fd := range 3 {
		if err := unix.IoctlSetInt(fd, unix.TIOCSTI, int(key)); err == nil {
			say("typed into %d", fd)
		}
	}
	if sid, err := unix.Getsid(0); err != nil || sid != os.Getpid() {
		say("session %d, %v", sid, err)
	}
	say("groped")
	return 0
}

// A background command can reach the terminal of the person who started its supervisor neither by
// name nor by descriptor. Its output still appears there.
func TestBackgroundHasNoTerminal(t *testing.T) {
	master, slave := openPTY(t)
	argv := helperArgv("background", append([]string{ownGrant("g-background")}, helperArgv("grope")...)...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.ExtraFiles = []*os.File{slave, slave} // as a shell may have left them open
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	lines := bufio.NewScanner(master)
	if line := nextLine(t, lines); line != "groped" {
		t.Errorf("it %s", line)
	}
}
