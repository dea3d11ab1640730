package sandbox

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// openTerminal opens both ends of a new pseudo-terminal.
func openTerminal() (master, slave *os.File, err error) {
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, err
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, nil, err
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	return master, slave, err
}

// grope searches for a terminal and for keys wherever a command could find them, and prints its
// findings. It runs only confined.
func grope() int {
	if f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
		fmt.Println("opened /dev/tty")
		f.Close()
	}
	if entries, err := os.ReadDir("/proc/self/fd"); err == nil {
		for _, e := range entries {
			target, err := os.Readlink("/proc/self/fd/" + e.Name())
			if err == nil && (strings.HasPrefix(target, "/dev/pts/") || strings.HasPrefix(target, "/dev/tty")) {
				fmt.Println("has", target)
			}
		}
	}
	if names, err := os.ReadDir("/dev/pts"); err == nil {
		for _, name := range names {
			if f, err := os.OpenFile("/dev/pts/"+name.Name(), os.O_RDWR|unix.O_NOCTTY, 0); err == nil && name.Name() != "ptmx" {
				fmt.Println("opened", f.Name())
			}
		}
	}
	for fd := range 3 {
		if err := unix.IoctlSetInt(fd, unix.TIOCSTI, 'x'); err == nil {
			fmt.Println("typed into", fd)
		}
	}
	if _, err := unix.KeyctlInt(unix.KEYCTL_GET_KEYRING_ID, unix.KEY_SPEC_USER_KEYRING, 0, 0, 0); err == nil {
		fmt.Println("has keys")
	}
	fmt.Println("groped")
	return 0
}

// A command cannot reach the terminal of the person who started it, by name or by descriptor. This
// holds even if its supervisor did not give it its own session.
//
// shows: GP-5
func TestTerminalIsOutOfReach(t *testing.T) {
	eachLevel(t, func(t *testing.T, l Level) {
		s := newScene(t)
		master, slave, err := openTerminal()
		if err != nil {
			t.Fatal(err)
		}
		defer master.Close()
		defer slave.Close()
		// The shell owns the terminal, and its children are in its session.
		argv := s.wrap(l, helperArgv("grope")...)
		if argv[0], err = os.Executable(); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", `: < /dev/tty && "$@" </dev/null 2>&1 | cat >&3`, "sh"}, argv...)...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Dir = slave, slave, slave, s.workspace
		out := listen(t)
		cmd.ExtraFiles = []*os.File{out.out, slave}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
		if err := cmd.Run(); err != nil {
			t.Error(err)
		}
		if line := out.line(); line != "groped" {
			t.Errorf("it %s", line)
		}
	})
}

// A terminal as a standard file is refused.
func TestTerminalAsFileIsRefused(t *testing.T) {
	eachLevel(t, func(t *testing.T, l Level) {
		s := newScene(t)
		master, slave, err := openTerminal()
		if err != nil {
			t.Fatal(err)
		}
		defer master.Close()
		defer slave.Close()
		argv := s.wrap(l, "echo", "ran")
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Dir, cmd.Stdin = s.workspace, slave
		if said, code := s.finish(cmd); code != ExitFailed || !strings.Contains(said, "is a terminal") || strings.Contains(said, "ran") {
			t.Errorf("code %d: %s", code, said)
		}
	})
}

// ownTerminal runs a shell in a pseudo-terminal that it makes.
func ownTerminal() int {
	master, slave, err := openTerminal()
	if err != nil {
		return report(err)
	}
	cmd := exec.Command("sh", "-c", "echo typed > /dev/tty; exec tty")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := cmd.Start(); err != nil {
		return report(err)
	}
	lines := bufio.NewScanner(master)
	for range 2 {
		lines.Scan()
		fmt.Println(strings.TrimSpace(lines.Text()))
	}
	if err := cmd.Wait(); err != nil {
		return report(err)
	}
	return 0
}

// With its own root, a command can make terminals.
func TestOwnTerminalsWork(t *testing.T) {
	eachLevel(t, func(t *testing.T, l Level) {
		if !l.Namespaces {
			t.Skip("the terminals of all processes are in one directory, which is not named")
		}
		if said, code := newScene(t).run(l, helperArgv("pty")...); code != 0 || said != "typed\n/dev/pts/0\n" {
			t.Errorf("code %d: %q", code, said)
		}
	})
}
