package cli

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

// interruptedError says that a signal asked the program to end.
type interruptedError struct{ signal syscall.Signal }

func (e *interruptedError) Error() string {
	return fmt.Sprintf("interrupted; nothing was taken or changed (%s)", e.signal)
}

// Code implements the classing of lockkeeper.CodeOf.
func (e *interruptedError) Code() lockkeeper.Code { return "interrupted" }

// interruptible ends the context on the signals that ask a program to end, so
// that a waiting request leaves the line. The cause is an *interruptedError.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	came, forget := endings()
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case s := <-came:
			cancel(&interruptedError{s.(syscall.Signal)})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		forget()
		cancel(nil)
		<-done
	}
}

// endings listens to the signals that ask a program to end, until it is to forget
// them. What this process was told to ignore, as by nohup, stays ignored.
func endings() (came chan os.Signal, forget func()) {
	came = make(chan os.Signal, 2)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(came, s)
		}
	}
	return came, func() { signal.Stop(came) }
}

// interrupted is err, unless a signal ended ctx: then that is what happened, and
// the program is to die of it once all is cleaned up.
func interrupted(ctx context.Context, err error) error {
	var by *interruptedError
	if !errors.As(context.Cause(ctx), &by) {
		return err
	}
	return killedBy(by.signal, by)
}

// killedBy is the end of a program that a signal asked to end.
func killedBy(s syscall.Signal, err error) error {
	return &codedError{exit: 128 + int(s), signal: s, err: err}
}

// die ends the program by the signal that its error names: a shell that runs it
// in a loop stops only for a command that died so.
func die(err error) {
	var coded *codedError
	if !errors.As(err, &coded) || coded.signal == 0 {
		return
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return
	}
	signal.Reset(coded.signal)
	if self.Signal(coded.signal) == nil {
		time.Sleep(time.Second) // it comes at any moment, on any thread; a blocked one never
	}
}
