package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
)

// sweepLimit bounds the wait for killed leftovers at the end of Run. What is not
// gone by then hangs in the kernel.
const sweepLimit = 10 * time.Second

// defaultKillAfter is how long a command may take to end when asked to.
const defaultKillAfter = 5 * time.Second

// Run runs a command under a grant and returns when nothing of its tree is left.
// The command gets a process group of its own and dies with this process. Unless
// it stands in for this process (Foreground), it also gets a session of its own
// and no terminal.
//
// The exit code is the command's own, 128 plus the signal that killed it, 126 or
// 127 with an error when it could not be executed or was not found, and -1 with
// an error when it was never started for another reason. When ctx ends the group
// gets SIGTERM and later SIGKILL, and the error is the cause of that end; an
// error of Started comes back the same way. A *LeftoversError says what of the
// tree would not go.
func Run(ctx context.Context, c Command) (int, error) {
	if err := c.check(); err != nil {
		return -1, err
	}
	if ctx.Err() != nil {
		return -1, context.Cause(ctx)
	}
	// The kernel sends the death signal when the starting thread ends, so that
	// thread must stay for as long as the command runs.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	self, err := Self()
	if err != nil {
		return -1, err
	}
	if err := home.enter(); err != nil {
		return -1, fmt.Errorf("run %s: %w", c.Argv[0], err)
	}
	defer home.leave()

	// Before the start, so that no signal falls between.
	r := &run{Command: c, signals: make(chan os.Signal, 16)}
	signal.Notify(r.signals, r.wanted()...)
	defer signal.Stop(r.signals)

	cmd := exec.Command(c.Argv[0], c.Argv[1:]...)
	c.prepare(cmd)
	if !c.Foreground {
		if err := c.detach(cmd); err != nil {
			return -1, fmt.Errorf("run %s: %w", c.Argv[0], err)
		}
	} else {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		r.tty = openTerminal()
		defer r.tty.close()
		if wantsTerminal(c.Stdin, c.Stdout) {
			r.tty.lendAtStart(cmd.SysProcAttr)
		}
	}
	child, err := home.start(cmd)
	if err != nil {
		return startFailure(c, err)
	}
	defer home.forget(child.pid)
	r.group = child.pid
	self.Group = r.group
	if r.tty != nil {
		r.tty.group = r.group
	}

	why := r.supervise(ctx, self, child)

	// Its zombie still pins the group's number: now everything in the group is
	// certain to be the command's.
	leftovers := r.sweep()
	cmd.Wait()
	home.reap()
	c.tell(cmd.ProcessState)
	return exitCode(cmd.ProcessState), errors.Join(why, leftovers)
}

// run is one command while it runs.
type run struct {
	Command
	group   int
	signals chan os.Signal
	tty     *terminal
}

// wanted lists the signals to listen to. What this process was told to ignore,
// as by nohup, stays ignored.
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

// supervise returns when the command has exited and is not yet reaped, with the
// reason if it was ended from here.
func (r *run) supervise(ctx context.Context, self lockkeeper.Process, child stat) error {
	h, err := openHandle(child.pid, child.start)
	if err != nil && !errors.Is(err, errGone) {
		r.send(unix.SIGKILL)
		return fmt.Errorf("run %s: %w", r.Argv[0], err)
	}
	exited := make(chan error, 1)
	if err == nil {
		defer h.close()
		go func() { exited <- h.wait(context.Background()) }()
	} else {
		exited <- nil
	}

	if r.Started != nil {
		if err := r.Started(self); err != nil {
			r.send(unix.SIGKILL)
			return errors.Join(err, <-exited)
		}
	}
	var why error
	ended, tooLong := ctx.Done(), (<-chan time.Time)(nil)
	for {
		select {
		case err := <-exited:
			return errors.Join(why, err)
		case s := <-r.signals:
			r.pass(s.(unix.Signal), child.pid)
		case <-ended:
			ended, why = nil, context.Cause(ctx)
			r.send(unix.SIGTERM)
			r.send(unix.SIGCONT) // a stopped command could not obey
			after := r.KillAfter
			if after == 0 {
				after = defaultKillAfter
			}
			timer := time.NewTimer(after)
			defer timer.Stop()
			tooLong = timer.C
		case <-tooLong:
			r.send(unix.SIGKILL)
		}
	}
}

// send signals the whole group; its leader is unreaped, so the number is ours.
func (r *run) send(s unix.Signal) { unix.Kill(-r.group, s) }

// pass acts on one signal that this process got.
func (r *run) pass(s unix.Signal, child int) {
	switch s {
	case unix.SIGCHLD:
		home.reap()
		if by, stopped := stoppedBy(child); stopped && r.Foreground {
			r.stopped(by)
		}
	case unix.SIGCONT:
		r.resume()
	default:
		r.send(s)
	}
}

// stopped follows a command that was stopped through the terminal. One that was
// stopped because it wanted the terminal is given it, if it is ours to give.
// Otherwise this process stops as well, so that the shell gets the terminal; no
// heartbeat is sent meanwhile, and a grant may expire as for any absent holder.
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
	r.tty.takeBack()
	stopSelf()
	r.resume()
}

func (r *run) resume() {
	if wantsTerminal(r.Stdin, r.Stdout) {
		r.tty.lend()
	}
	r.send(unix.SIGCONT)
}

// sweep ends all that is left of the command's tree. Orphans were adopted, so
// whatever carries the mark below this process is part of it.
func (r *run) sweep() error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), sweepLimit,
		fmt.Errorf("waited %s", sweepLimit))
	defer cancel()
	return end(ctx, r.Grant, func(t table) map[int]bool {
		below := map[int]bool{os.Getpid(): true}
		t.below(below)
		set := map[int]bool{}
		for pid := range below {
			s := t[pid]
			if pid != os.Getpid() && (s.group == r.group || !s.dead() && markOf(pid, r.Grant) == marked) {
				set[pid] = true
			}
		}
		home.straysOfOnlyRun(t, set)
		return set
	})
}

func exitCode(state *os.ProcessState) int {
	if state == nil {
		return -1
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

func startFailure(c Command, err error) (int, error) {
	// The kernel gives a missing folder and a missing program the same error.
	if c.Dir != "" {
		if _, bad := os.Stat(c.Dir); bad != nil {
			return -1, fmt.Errorf("run %q in %q: %w", c.Argv[0], c.Dir, bad)
		}
	}
	err = fmt.Errorf("run %q: %w", c.Argv[0], err)
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return ExitNotFound, err
	}
	return ExitNotExecutable, err
}
