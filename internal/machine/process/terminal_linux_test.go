package process

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// openPTY opens both ends of a new pseudo-terminal.
func openPTY(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close(); slave.Close() })
	return master, slave
}

func front() bool {
	group, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// jobShell handles one job as a shell does: in front, stopped, continued.
func jobShell(argv []string) int {
	signal.Ignore(unix.SIGTTOU)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Foreground: true, Ctty: 0}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	job := cmd.Process.Pid
	for {
		var status unix.WaitStatus
		if _, err := unix.Wait4(job, &status, unix.WUNTRACED, nil); err != nil {
			continue
		}
		group, _ := unix.IoctlGetInt(0, unix.TIOCGPGRP)
		say("job in front: %t", group == job)
		if !status.Stopped() {
			say("job ended: %d, %s", status.ExitStatus(), Terminal())
			return 0
		}
		unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, unix.Getpgrp())
		say("job stopped")
		unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, job)
		unix.Kill(-job, unix.SIGCONT)
	}
}

// screen is a command that needs the terminal. The interrupt key ends it.
func screen() int {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGINT, unix.SIGCONT)
	say("command in front: %t", front())
	continued := false // SIGCONT may come twice
	for s := range signals {
		if s == unix.SIGINT {
			return 42
		}
		if front() && !continued {
			say("command continued in front")
			continued = true
		}
	}
	return 0
}

// The command has the terminal while it runs. The stop key also stops the supervisor, and after
// that the supervisor has the terminal again.
func TestTerminalIsLentAndTakenBack(t *testing.T) {
	master, slave := openPTY(t)
	argv := helperArgv("supervise", append([]string{ownGrant("g-tty")}, helperArgv("screen")...)...)
	shell := exec.Command(os.Args[0], append(helperArgv("shell")[1:], argv...)...)
	shell.Stdin, shell.Stdout, shell.Stderr = slave, slave, slave
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shell.Process.Kill(); shell.Wait() })

	lines := bufio.NewScanner(master)
	// The terminal echoes the keys in front of a line.
	expect := func(want string) {
		t.Helper()
		if got := nextLine(t, lines); strings.TrimLeft(got, "^ZC") != want {
			t.Fatalf("got line %q, want %q", got, want)
		}
	}
	expect("command in front: true")
	master.Write([]byte{'Z' & 31})
	expect("job in front: true")
	expect("job stopped")
	expect("command continued in front")
	master.Write([]byte{'C' & 31})
	expect("job in front: true")
	expect("job ended: 42, " + strings.TrimPrefix(slave.Name(), "/dev/"))
}

func TestTerminalNames(t *testing.T) {
	for device, want := range map[uint64]string{136<<8 | 3: "pts/3", 136<<8 | 1<<20 | 4: "pts/260"} {
		if got := terminalName(device); got != want {
			t.Errorf("device %#x is %s, want %s", device, got, want)
		}
	}
}
