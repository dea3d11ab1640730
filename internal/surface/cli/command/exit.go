package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"time"

	"lockkeeper"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/surface/cli/term"
)

// These are the exit codes. A command that lock exec runs passes its own code through.
const (
	ExitOK        = 0
	ExitFailed    = 1   // any other failure
	exitUsage     = 2   // invalid command line or input
	ExitBlocked   = 3   // another holder has the lock, or waited for it earlier
	exitTimeout   = 4   // still blocked after --wait
	ExitViolation = 5   // refused by the gate
	ExitOverLock  = 6   // a write lock was requested on a directory
	ExitBudget    = 7   // the budget of a run is spent
	ExitLost      = 125 // the grant was lost while the command ran, or could not be released
)

// An Exit is one exit code with its meaning, and the classes of errors that end with it.
type Exit struct {
	Code    string // a number, or a formula such as 128+N
	Meaning string
	number  int
	classes []lockkeeper.Code
}

func Exits() []Exit {
	list := []Exit{
		{number: ExitOK, Meaning: "success"},
		{number: ExitFailed, Meaning: "failure; also refused, not held, or the lock store is unreachable", classes: []lockkeeper.Code{lockkeeper.CodeNotHeld, lockkeeper.CodeRefused, lockkeeper.CodeStore, lockkeeper.CodeFailed}},
		{number: exitUsage, Meaning: "invalid command line or input", classes: []lockkeeper.Code{lockkeeper.CodeInput}},
		{number: ExitBlocked, Meaning: "blocked: another holder has the lock, or waits for it earlier", classes: []lockkeeper.Code{lockkeeper.CodeBlocked}},
		{number: exitTimeout, Meaning: "timed out: still blocked after --wait", classes: []lockkeeper.Code{lockkeeper.CodeTimeout}},
		{number: ExitViolation, Meaning: "the gate refused a write", classes: []lockkeeper.Code{lockkeeper.CodeViolation}},
		{number: ExitOverLock, Meaning: "a directory was requested for writing", classes: []lockkeeper.Code{lockkeeper.CodeOverLock}},
		{number: ExitBudget, Meaning: "the budget of a run is spent", classes: []lockkeeper.Code{lockkeeper.CodeBudget}},
		{number: ExitLost, Meaning: "lock exec: the grant was lost while the command ran, or could not be released"},
		{number: process.ExitNotExecutable, Meaning: "lock exec: the command cannot be executed"},
		{number: process.ExitNotFound, Meaning: "lock exec: the command was not found"},
	}
	for i := range list {
		list[i].Code = strconv.Itoa(list[i].number)
	}
	return append(list, Exit{Code: "128+N", Meaning: "signal N ended the program"})
}

// ExitError ends the program with a given code. Without Err it prints nothing, because the
// command has printed the reason.
type ExitError struct {
	Code   int
	Err    error
	Signal syscall.Signal // ends the program after the clean-up; 0: none
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// ExitCode returns the exit code for an error.
func ExitCode(err error) int {
	var coded *ExitError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &coded):
		return coded.Code
	}
	class := lockkeeper.CodeOf(err)
	for _, exit := range Exits() {
		if slices.Contains(exit.classes, class) {
			return exit.number
		}
	}
	return ExitFailed
}

// Unwritten returns the error for an answer that could not be written, or nil. As is usual,
// a reader that closed the pipe gets no message.
func Unwritten(o *term.Output) error {
	switch {
	case o.Err == nil:
		return nil
	case errors.Is(o.Err, syscall.EPIPE):
		return &ExitError{Code: 128 + int(syscall.SIGPIPE)}
	}
	return &ExitError{Code: ExitFailed, Err: errors.New("cannot write the answer: " + o.Err.Error())}
}

// InterruptedError reports that a signal asked the program to end.
type InterruptedError struct{ Signal syscall.Signal }

func (e *InterruptedError) Error() string {
	return fmt.Sprintf("interrupted; nothing was acquired or changed (%s)", e.Signal)
}

func (e *InterruptedError) Code() lockkeeper.Code { return "interrupted" }

// Interruptible cancels the context on a signal that asks the program to end, so that a
// waiting request leaves the wait list. The cause is an *InterruptedError.
func Interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	came, forget := StopSignals()
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case s := <-came:
			cancel(&InterruptedError{s.(syscall.Signal)})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		forget()
		cancel(nil)
		<-done
	}
}

// StopSignals listens to the signals that ask the program to end, until forget is called.
// Ignored signals, as under nohup, stay ignored.
func StopSignals() (came chan os.Signal, forget func()) {
	came = make(chan os.Signal, 2)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(came, s)
		}
	}
	return came, func() { signal.Stop(came) }
}

// Interrupted returns err, or if a signal ended ctx, the error that ends the program by that
// signal after the clean-up.
func Interrupted(ctx context.Context, err error) error {
	var by *InterruptedError
	if !errors.As(context.Cause(ctx), &by) {
		return err
	}
	return KilledBy(by.Signal, by)
}

// KilledBy returns the error that ends the program by a signal.
func KilledBy(s syscall.Signal, err error) error {
	return &ExitError{Code: 128 + int(s), Signal: s, Err: err}
}

// Die ends the program by the signal in its error. A shell that runs the program in a loop
// stops only if the program ended by a signal.
func Die(err error) {
	var coded *ExitError
	if !errors.As(err, &coded) || coded.Signal == 0 {
		return
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return
	}
	signal.Reset(coded.Signal)
	if self.Signal(coded.Signal) == nil {
		time.Sleep(time.Second) // waits until the signal arrives; a blocked signal never does
	}
}
