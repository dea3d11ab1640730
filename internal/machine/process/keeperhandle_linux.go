package process

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// A keeperHandle is the supervisor's handle on a keeper process.
type keeperHandle struct {
	stat
	cmd     *exec.Cmd
	cgroup  *cgroup   // nil: none
	present *presence // the command's locked file; nil: none
	socket  *os.File
	wishes  *json.Encoder
	reports chan report // closed when the keeper is gone
	reading sync.WaitGroup
}

// startKeeper starts the keeper of a command. The keeper starts the command when the
// supervisor asks it to (wish.Start).
func startKeeper(c *Command, command *exec.Cmd, lend bool) (_ *keeperHandle, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("start a keeper: %w", err)
	}
	k := &keeperHandle{socket: os.NewFile(uintptr(pair[0]), "keeper"), reports: make(chan report, 1), cgroup: newCgroup(), present: newPresence(c.presence)}
	theirs := os.NewFile(uintptr(pair[1]), "supervisor")
	defer theirs.Close()
	defer func() {
		if err != nil {
			k.socket.Close()
			k.clear()
		}
	}()
	k.cmd = exec.Command("/proc/self/exe", keeperArg)
	k.cmd.Args[0] = os.Args[0]
	k.cmd.Dir, k.cmd.Env = command.Dir, os.Environ()
	k.cmd.Stdin, k.cmd.Stdout, k.cmd.Stderr = command.Stdin, command.Stdout, command.Stderr
	k.cmd.ExtraFiles = []*os.File{theirs}
	if k.present != nil {
		k.cmd.ExtraFiles = append(k.cmd.ExtraFiles, k.present.file)
	}
	// The keeper has its own group, so that a signal to the group of the supervisor or of
	// the command does not end it. A foreground command needs the session of its terminal.
	k.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: c.Foreground, Setsid: !c.Foreground}
	if k.stat, err = reaper.start(k.cmd); err != nil {
		return nil, err
	}
	k.wishes = json.NewEncoder(k.socket)
	o := order{Program: command.Path, Argv: command.Args, Env: command.Environ(), Session: !c.Foreground, Lend: lend, Present: k.present != nil}
	if k.cgroup != nil {
		o.Cgroup = k.cgroup.dir
	}
	k.reading.Go(k.read)
	k.wishes.Encode(o) // read notices if the keeper is gone
	return k, nil
}

// read forwards the reports of the keeper until the keeper is gone.
func (k *keeperHandle) read() {
	defer close(k.reports)
	from := json.NewDecoder(k.socket)
	for {
		var r report
		if from.Decode(&r) != nil {
			return
		}
		k.reports <- r
	}
}

// ask sends a wish. It ignores errors: if the keeper is gone, the method read reports that.
func (k *keeperHandle) ask(w wish) { k.wishes.Encode(w) }

// dismiss ends a keeper whose command has ended, and returns when it is gone. The keeper
// exits when its socket is closed.
func (k *keeperHandle) dismiss() {
	k.hangUp()
	k.cmd.Wait()
	reaper.forget(k.pid)
	k.clear()
}

// leave lets a keeper continue without this process until its command's processes are
// gone.
func (k *keeperHandle) leave() {
	k.hangUp()
	reaper.forget(k.pid)
	k.present.close()
}

// hangUp closes the socket and drops late reports.
func (k *keeperHandle) hangUp() {
	k.socket.Close()
	for range k.reports {
	}
	k.reading.Wait()
}

// clear removes the control group and the presence. If a process is left in the group, the group
// stays. The next holder ends that process and removes the group.
func (k *keeperHandle) clear() {
	k.cgroup.remove()
	k.present.remove()
}
