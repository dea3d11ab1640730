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

// InterruptedError reports that a signal asked the program to end.
type InterruptedError struct{ Signal syscall.Signal }

func (e *InterruptedError) Error() string {
	return fmt.Sprintf("interrupted; nothing was acquired or changed (%s)", e.Signal)
}

// Code implements lockkeeper.CodeOf.
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
		time.Sleep(time.Second) // until the signal arrives; a blocked one never does
	}
}
