package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"lockkeeper"
)

// GrantVariable is the environment variable that marks each process under a grant with the
// grant's id.
const GrantVariable = "LOCKKEEPER_GRANT"

// grantsVariable lists all grants that a process runs under, outermost first.
const grantsVariable = "LOCKKEEPER_GRANTS"

// Exit codes of a command that could not be run, as shells give them.
const (
	ExitNotExecutable = 126
	ExitNotFound      = 127
)

// A Command is a command to be run under a grant.
type Command struct {
	Argv []string // the program, looked up in PATH, and its arguments
	Dir  string   // working directory; empty: the caller's
	Env  []string // environment; nil: the caller's. The grant's mark is added

	// Stdin, Stdout and Stderr are the command's standard files; nil is the null
	// device. A background command never gets a terminal: its output is copied
	// there, and its input is the null device instead.
	Stdin, Stdout, Stderr *os.File

	// Grant is the id that marks the tree. One command at a time may run under one
	// grant in one process: the end of a command ends all marked processes below this one.
	Grant string

	// KillAfter is the time between SIGTERM and SIGKILL when the context ends;
	// 0: five seconds.
	KillAfter time.Duration

	// Foreground makes the command take the place of this process: it gets the signals
	// sent to this process and the terminal, and if it is stopped from the terminal this
	// process stops too. The program must not cancel the context on these signals.
	Foreground bool

	// Started is called once, right before the command starts, with the identity of this process
	// and of the keeper. So both are recorded as long as a process of the command exists. If it
	// fails, the command does not start and Run returns its error.
	Started func(lockkeeper.Process) error

	presence string // directory for the locked file that shows that the command is alive (presenceDir); empty: none

	// Killed, if not nil, is called before Run returns if a signal ended the command. The
	// exit code alone does not show it.
	Killed func(syscall.Signal)
}

// tell calls Killed if a signal ended the command.
func (c *Command) tell(status syscall.WaitStatus) {
	if c.Killed != nil && status.Signaled() {
		c.Killed(status.Signal())
	}
}

func (c *Command) check() error {
	switch {
	case len(c.Argv) == 0 || c.Argv[0] == "":
		return &lockkeeper.InputError{Field: "command", Reason: "empty", Next: "name the program to run after --"}
	case c.Grant == "":
		return &lockkeeper.InputError{Field: "grant", Reason: "a command runs only under a grant"}
	case c.KillAfter < 0:
		return &lockkeeper.InputError{Field: "kill after", Value: c.KillAfter.String(), Reason: "negative"}
	}
	return nil
}

// prepare sets the directory, environment and standard files of the command. It omits nil
// files: as an io.Reader or io.Writer, a nil *os.File is not equal to nil, so os/exec would use
// it instead of the null device.
func (c *Command) prepare(cmd *exec.Cmd) {
	cmd.Dir, cmd.Env = c.Dir, c.environment()
	if c.Stdin != nil {
		cmd.Stdin = c.Stdin
	}
	if c.Stdout != nil {
		cmd.Stdout = c.Stdout
	}
	if c.Stderr != nil {
		cmd.Stderr = c.Stderr
	}
}

// environment returns the command's environment with the mark of its grant, and with the
// outer grants it runs under: a command under locks may run another one.
func (c *Command) environment() []string {
	env := c.Env
	if env == nil {
		env = os.Environ()
	}
	all := strings.Join(append(Under(env), c.Grant), ":")
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		return strings.HasPrefix(v, GrantVariable+"=") || strings.HasPrefix(v, grantsVariable+"=")
	})
	return append(env, GrantVariable+"="+c.Grant, grantsVariable+"="+all)
}

// startFailure returns the exit code and the error of a command that could not be started.
func startFailure(c Command, err error) (int, error) {
	// The kernel gives a missing directory and a missing program the same error.
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

// Under lists the grants that a process with this environment runs under, outermost first.
func Under(env []string) (grants []string) {
	for _, entry := range env {
		if list, ok := strings.CutPrefix(entry, grantsVariable+"="); ok && list != "" {
			grants = strings.Split(list, ":")
		}
	}
	return grants
}

// A Leftover is one process of a grant that could not be ended.
type Leftover struct {
	PID    int
	Name   string
	Reason string
}

// A LeftoversError names the processes of a grant that are still running. Until they end,
// the grant must not be released.
type LeftoversError struct {
	GrantID string
	Left    []Leftover
}

func (e *LeftoversError) Error() string {
	each := make([]string, len(e.Left))
	for i, l := range e.Left {
		each[i] = fmt.Sprintf("pid %d (%q): %s", l.PID, l.Name, l.Reason)
	}
	return lockkeeper.JoinNext(fmt.Sprintf("grant %s still has running processes: %s", e.GrantID, strings.Join(each, "; ")), e.NextStep())
}

func (e *LeftoversError) NextStep() string { return "end them (kill -9 PID), then retry" }

func (e *LeftoversError) Code() lockkeeper.Code { return lockkeeper.CodeRefused }
