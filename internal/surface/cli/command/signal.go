package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"lockkeeper"
)

// InterruptedError says that a signal asked the program to end.
type InterruptedError struct{ Signal syscall.Signal }

func (e *InterruptedError) Error() string {
	return fmt.Sprintf("interrupted; nothing was acquired or changed (%s)", e.Signal)
}

// Code implements lockkeeper.CodeOf.
func (e *InterruptedError) Code() lockkeeper.Code { return "interrupted" }

// Interruptible ends the context on the signals that ask a program to end, so
// that a waiting request leaves the line. The cause is an *interruptedError.
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

// StopSignals listens to the signals that ask a program to end, until it is to forget
// them. What this process was told to ignore, as by nohup, stays ignored.
func StopSignals() (came chan os.Signal, forget func()) {
	came = make(chan os.Signal, 2)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(came, s)
		}
	}
	return came, func() { signal.Stop(came) }
}

// Interrupted is err, unless a signal ended ctx: then that is what happened, and
// the program is to die of it once all is cleaned up.
func Interrupted(ctx context.Context, err error) error {
	var by *InterruptedError
	if !errors.As(context.Cause(ctx), &by) {
		return err
	}
	return KilledBy(by.Signal, by)
}

// KilledBy is the end of a program that a signal asked to end.
func KilledBy(s syscall.Signal, err error) error {
	return &ExitError{Code: 128 + int(s), Signal: s, Err: err}
}

// Die ends the program by the signal that its error names: a shell that runs it
// in a loop stops only for a command that died so.
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
		time.Sleep(time.Second) // it comes at any moment, on any thread; a blocked one never
	}
}
