package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sweepLimit bounds the wait for killed leftovers at the end of Run. A process that is not
// gone by then hangs in the kernel.
const sweepLimit = 10 * time.Second

// defaultKillAfter is the time between SIGTERM and SIGKILL if Command.KillAfter is 0.
const defaultKillAfter = 5 * time.Second

// Run runs a command under a grant and returns when all processes of its tree are gone.
// The command gets a keeper as its parent, and its own process group. It is ended when this
// process or the keeper dies. Unless it runs in the foreground, it also gets its own session
// and no terminal.
//
// The exit code is the command's own, or 128 plus the signal that killed it. It is 126 with an
// error if the command could not be executed, and 127 if it was not found. It is -1 with an error
// if the command was not started for another reason, such as an error of Started. When ctx ends the
// group gets SIGTERM and later SIGKILL, and the error is the cause of ctx. A *LeftoversError names
// the processes that did not end.
func Run(ctx context.Context, c Command) (int, error) {
	if err := c.check(); err != nil {
		return -1, err
	}
	if ctx.Err() != nil {
		return -1, context.Cause(ctx)
	}
	command := exec.Command(c.Argv[0], c.Argv[1:]...)
	c.prepare(command)
	if command.Err != nil {
		return startFailure(c, command.Err)
	}
	// Signal masks, which the terminal's hand-over changes, belong to a thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	self, err := Self()
	if err != nil {
		return -1, err
	}
	if err := reaper.enter(); err != nil {
		return -1, fmt.Errorf("run %s: %w", c.Argv[0], err)
	}
	defer reaper.leave()

	// Signals are caught before the start, so that none is lost.
	r := &run{Command: c, signals: make(chan os.Signal, 16)}
	signal.Notify(r.signals, r.wanted()...)
	defer signal.Stop(r.signals)
	lend := false
	if !c.Foreground {
		if err := c.detach(command); err != nil {
			return -1, fmt.Errorf("run %s: %w", c.Argv[0], err)
		}
	} else {
		r.tty = openTerminal()
		defer r.tty.close()
		lend = wantsTerminal(c.Stdin, c.Stdout) && r.tty.lendAtStart()
	}
	if r.keeper, err = startKeeper(&c, command, lend); err != nil {
		return startFailure(c, err)
	}
	self.Group, self.Keeper, self.Presence = r.keeper.pid, r.keeper.start, r.keeper.present.name()
	if r.keeper.cgroup != nil {
		self.Cgroup = r.keeper.cgroup.path
	}
	if c.Started != nil {
		if err := c.Started(self); err != nil {
			r.keeper.dismiss()
			return -1, err
		}
	}
	r.keeper.ask(wish{Start: true})
	why, err := r.supervise(ctx)
	if err != nil {
		r.keeper.dismiss()
		return startFailure(c, err)
	}
	leftovers := r.end()
	reaper.reap()
	c.tell(r.status)
	return exitCode(r.status), errors.Join(why, leftovers)
}

// run is the state of one running command.
type run struct {
	Command
	keeper  *keeperHandle
	ended   bool // the keeper has seen all processes of the command end, except left
	status  syscall.WaitStatus
	left    []Leftover
	signals chan os.Signal
	tty     *terminal
}

// wanted lists the signals to listen to. A signal that this process ignores, as under nohup,
// stays ignored.
func (r *run) wanted() []os.Signal {
	list := []os.Signal{unix.SIGCHLD}
	if !r.Foreground {
		return list
	}
	for _, s := range []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2,
		unix.SIGWINCH, unix.SIGTSTP, unix.SIGCONT} {
		if !signal.Ignored(s) {
			list = append(list, s)
		}
	}
	return list
}

// killedStatus is the status of a command that died because its keeper was killed.
const killedStatus = syscall.WaitStatus(syscall.SIGKILL)

// supervise returns when the keeper has ended the command or is itself gone. why is the
// reason if this process ended it, failed the error if the command could not be started.
func (r *run) supervise(ctx context.Context) (why, failed error) {
	ended, due := ctx.Done(), (<-chan time.Time)(nil)
	next := unix.SIGKILL // the signal to send when due
	for {
		select {
		case said, ok := <-r.keeper.reports:
			switch {
			case !ok:
				r.status = killedStatus
				return why, nil
			case said.Errno != 0:
				return nil, said.Errno
			case said.Ended:
				r.ended, r.status, r.left = true, syscall.WaitStatus(said.Status), said.Left
				return why, nil
			case said.Started != 0 && r.tty != nil:
				r.tty.group = said.Started
			case said.Stopped != 0 && r.Foreground:
				r.stopped(said.Stopped)
			}
		case s := <-r.signals:
			r.pass(s.(unix.Signal))
		case <-ended:
			ended, why = nil, context.Cause(ctx)
			r.send(unix.SIGTERM)
			r.send(unix.SIGCONT) // a stopped command could not obey
			due = time.After(cmp.Or(r.KillAfter, defaultKillAfter))
		case <-due:
			if next == 0 { // the keeper does not answer because it was stopped
				r.keeper.cmd.Process.Kill()
				due = nil
				continue
			}
			r.send(next)
			next, due = 0, time.After(sweepLimit+defaultKillAfter)
		}
	}
}

// send makes the keeper signal the whole process group of the command.
func (r *run) send(s unix.Signal) { r.keeper.ask(wish{Signal: s}) }

// pass handles a signal that this process received.
func (r *run) pass(s unix.Signal) {
	switch s {
	case unix.SIGCHLD:
		reaper.reap()
	case unix.SIGCONT:
		r.resume()
	default:
		r.send(s)
	}
}

// stopped handles a command that was stopped through the terminal. If the command was
// stopped because it wanted the terminal, it gets the terminal if this process has it.
// Otherwise this process stops as well, so that the shell gets the terminal. Meanwhile no
// heartbeat is sent, and the grant may expire.
func (r *run) stopped(by unix.Signal) {
	if r.tty == nil {
		return
	}
	switch by {
	case unix.SIGTTIN, unix.SIGTTOU:
		if r.tty.lend() {
			r.send(unix.SIGCONT)
			return
		}
	case unix.SIGTSTP:
	default:
		return
	}
	r.tty.reclaim()
	stopSelf()
	r.resume()
}

func (r *run) resume() {
	if wantsTerminal(r.Stdin, r.Stdout) {
		r.tty.lend()
	}
	r.send(unix.SIGCONT)
}

// end waits until the keeper is gone. If the keeper was killed, its children are now children
// of this process, the next reaper of orphans above it, and are ended here.
func (r *run) end() error {
	if len(r.left) > 0 {
		r.keeper.leave()
		return &LeftoversError{GrantID: r.Grant, Left: r.left}
	}
	if r.ended {
		r.keeper.dismiss()
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), sweepLimit,
		fmt.Errorf("waited %s", sweepLimit))
	defer cancel()
	// The socket of the keeper closes before its children become children of this process.
	r.keeper.cmd.Process.Wait()
	err := end(ctx, r.Grant, r.keeper.cgroup, nil, reaper.orphans)
	r.keeper.dismiss()
	return err
}

func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}
