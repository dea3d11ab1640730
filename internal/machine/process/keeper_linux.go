package process

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// keeperArg is the first argument by which the program knows that it was started
// as a keeper.
const keeperArg = "@keeper"

// supervisorFD is the keeper's end of the socket between it and its supervisor.
const supervisorFD = 3

// presenceFD is the descriptor of the command's locked file (presenceDir), if order.Present is set.
const presenceFD = 4

// init turns a program that was started as a keeper into one before main runs. So no program that
// uses this package can forget it and start itself endlessly.
func init() {
	if len(os.Args) > 1 && os.Args[1] == keeperArg {
		runKeeper()
		os.Exit(0)
	}
}

// An order describes the command of a keeper. The supervisor sends it over the socket, because a
// command line is limited in length and readable by every user.
type order struct {
	Program   string
	Argv, Env []string
	Session   bool   // the command gets a session of its own, and not only a process group
	Lend      bool   // the command takes the terminal at its start
	Present   bool   // the keeper has the command's locked file open (presenceDir)
	Cgroup    string // directory of the control group that the command starts in; empty: none
}

// A wish is a request of the supervisor to the keeper after the order.
type wish struct {
	Start  bool        // start the command
	Signal unix.Signal // a signal to send to the command's process group
}

// A report is a message from the keeper to the supervisor.
type report struct {
	Started int           `json:",omitempty"` // PID of the command, and number of its process group
	Errno   syscall.Errno `json:",omitempty"` // why the command could not be started
	Stopped unix.Signal   `json:",omitempty"` // the command was stopped by this signal
	Ended   bool          `json:",omitempty"` // nothing of the command is left except Left
	Status  int           `json:",omitempty"` // wait status of the command
	Left    []Leftover    `json:",omitempty"`
}

// A keeper is the state of the keeper process, the parent of one command. Orphaned
// descendants of the command become its children, so it has children until the last
// descendant is gone. It ends all of them when the command ends or the supervisor dies.
type keeper struct {
	order   order
	reports *json.Encoder
	wishes  chan wish      // closed when the supervisor is gone
	changed chan os.Signal // SIGCHLD: a child of the keeper has changed
	sent    chan os.Signal // signals that another process sent to the keeper
	command int            // 0: not running
	status  syscall.WaitStatus
}

func runKeeper() {
	// The kernel sends the death signal to the command when this thread ends.
	runtime.LockOSThread()
	unix.CloseOnExec(supervisorFD)
	unix.CloseOnExec(presenceFD) // this call has no effect if there is no presence file
	if unix.SetNonblock(supervisorFD, true) != nil {
		return
	}
	socket := os.NewFile(supervisorFD, "supervisor")
	k := &keeper{reports: json.NewEncoder(socket), wishes: make(chan wish), changed: make(chan os.Signal, 1), sent: make(chan os.Signal, 8)}
	k.catch()
	from := json.NewDecoder(socket)
	self, err := readStat(os.Getpid())
	if err != nil || from.Decode(&k.order) != nil || unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != nil {
		return
	}
	limitMarkOf(self.pid, self.start).put()
	go k.listen(from)
	if w := <-k.wishes; !w.Start {
		return
	}
	if failed := k.start(); failed != 0 {
		k.reports.Encode(report{Errno: failed})
		return
	}
	k.attend()
	k.sweep()
}

// catch keeps signals from ending or stopping the keeper before its command. It catches
// them, because the command would inherit ignored signals. The command sees the keeper as
// its parent, so the keeper passes signals that a process sends there on to the command.
func (k *keeper) catch() {
	signal.Notify(k.changed, unix.SIGCHLD)
	dropped := make(chan os.Signal, 1)
	for to, signals := range map[chan os.Signal][]os.Signal{
		k.sent:  {unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2},
		dropped: {unix.SIGPIPE, unix.SIGALRM, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU},
	} {
		for _, s := range signals {
			if !signal.Ignored(s) {
				signal.Notify(to, s)
			}
		}
	}
}

// listen forwards the requests of the supervisor until the supervisor is gone.
func (k *keeper) listen(from *json.Decoder) {
	defer close(k.wishes)
	for {
		var w wish
		if from.Decode(&w) != nil {
			return
		}
		k.wishes <- w
	}
}

// start starts the command in its own process group. It closes the keeper's copies of the command's
// standard files, so that readers of the output see the end of file.
func (k *keeper) start() syscall.Errno {
	attr := &syscall.ProcAttr{Env: k.order.Env, Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Setsid: k.order.Session, Setpgid: !k.order.Session, Pdeathsig: syscall.SIGKILL}}
	if k.order.Lend {
		if fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0); err == nil {
			defer unix.Close(fd)
			attr.Sys.Foreground, attr.Sys.Ctty = true, fd
		}
	}
	pid, err := k.fork(attr)
	var failed syscall.Errno
	if errors.As(err, &failed) {
		return failed
	}
	k.command = pid
	if null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0); err == nil {
		for fd := range 3 {
			unix.Dup3(null, fd, unix.O_CLOEXEC)
		}
		unix.Close(null)
	}
	k.reports.Encode(report{Started: pid}) // listen notices if the supervisor is gone
	return 0
}

// fork starts the command in its control group, if it has one. Where the kernel refuses
// that, the command starts without one. If the group was removed, the work was ended before
// it began (Host.EndWork), and the command does not start.
func (k *keeper) fork(attr *syscall.ProcAttr) (int, error) {
	if k.order.Cgroup != "" {
		fd, err := unix.Open(k.order.Cgroup, unix.O_DIRECTORY|unix.O_PATH|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOENT) {
			return 0, unix.ECANCELED
		}
		if err == nil {
			defer unix.Close(fd)
			in := *attr.Sys
			in.UseCgroupFD, in.CgroupFD = true, fd
			pid, err := syscall.ForkExec(k.order.Program, k.order.Argv, &syscall.ProcAttr{Env: attr.Env, Files: attr.Files, Sys: &in})
			switch {
			case err == nil:
				return pid, nil
			case errors.Is(err, unix.ENODEV):
				return 0, unix.ECANCELED
			}
		}
	}
	return syscall.ForkExec(k.order.Program, k.order.Argv, attr)
}

// attend returns when the command has ended or the supervisor is gone.
func (k *keeper) attend() {
	for k.command != 0 {
		select {
		case w, ok := <-k.wishes:
			if !ok {
				return
			}
			if w.Signal != 0 {
				k.signal(w.Signal)
			}
		case s := <-k.sent:
			k.signal(s.(unix.Signal))
		case <-k.changed:
			k.reap()
		}
	}
}

// signal signals the command's process group. Its leader is not reaped, so no other
// group has its number.
func (k *keeper) signal(s unix.Signal) { unix.Kill(-k.command, s) }

// reap collects the exit status of children that ended, and reports whether any child is left.
func (k *keeper) reap() bool {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG|syscall.WUNTRACED|syscall.WALL, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return false
		case pid == 0:
			return true
		case pid == k.command && status.Stopped():
			k.reports.Encode(report{Stopped: unix.Signal(status.StopSignal())})
		case pid == k.command:
			k.command, k.status = 0, status
		}
	}
}

// retry is how often the keeper repeats SIGKILL for processes that have not ended.
const retry = time.Second

// sweep kills the remaining processes of the command until this process has no child. After
// sweepLimit it reports which are left, and continues even without a supervisor.
func (k *keeper) sweep() {
	said := false
	late, again := time.NewTimer(sweepLimit), time.NewTicker(retry)
	defer late.Stop()
	defer again.Stop()
	for wishes := k.wishes; k.reap(); {
		k.killAll()
		select {
		case <-k.changed:
		case <-again.C:
		case _, ok := <-wishes: // it is too late for any request
			if !ok {
				wishes = nil
			}
		case <-late.C:
			said = true
			k.reports.Encode(report{Ended: true, Status: int(k.status), Left: k.left()})
		}
	}
	if k.order.Cgroup != "" {
		// The removal fails if an outside process has forked into the group. The next holder then
		// tries again.
		(&cgroup{dir: k.order.Cgroup, path: filepath.Base(k.order.Cgroup)}).remove()
	}
	if k.order.Present {
		unix.Pwrite(presenceFD, []byte(presenceEnded), 0) // without this mark, the lease decides
	}
	if !said {
		k.reports.Encode(report{Ended: true, Status: int(k.status)})
	}
}

// killAll kills every descendant of this process.
func (k *keeper) killAll() {
	if k.order.Cgroup != "" {
		(&cgroup{dir: k.order.Cgroup}).kill() // the loop below kills the processes that this call misses
	}
	for _, s := range k.descendants() {
		if h, err := kill(s); err == nil {
			h.close()
		}
	}
}

// descendants lists the living descendants of this process.
func (k *keeper) descendants() (list []stat) {
	t, err := readTable(nil)
	if err != nil {
		return nil // the caller retries
	}
	set := map[int]bool{os.Getpid(): true}
	t.below(set)
	delete(set, os.Getpid())
	for _, pid := range slices.Sorted(maps.Keys(set)) {
		if !t[pid].dead() {
			list = append(list, t[pid])
		}
	}
	return list
}

func (k *keeper) left() (list []Leftover) {
	for _, s := range k.descendants() {
		list = append(list, Leftover{s.pid, s.name, "still running " + sweepLimit.String() + " after SIGKILL"})
	}
	return list
}
