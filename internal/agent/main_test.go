package agent

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lockkeeper/internal/agent/scripted"
)

var update = flag.Bool("update", false, "write the golden files, and record real programs where they are installed")

// playsVariable makes the test binary act as the scripted agent.
const playsVariable = "LOCKKEEPER_TEST_PLAYS_AGENT"

func TestMain(m *testing.M) {
	if os.Getenv(playsVariable) == "" {
		flag.Parse()
		goleak.VerifyTestMain(m)
		return
	}
	dir, err := os.Getwd()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	os.Exit(scripted.Run(ctx, scripted.Process{Args: os.Args[1:], Script: os.Getenv(scripted.ScriptVariable), Dir: dir,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}))
}

// runPlainly runs a command with only the standard library.
func runPlainly(ctx context.Context, c Command) (Exit, error) {
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Dir, c.Env, c.Stdin, c.Stdout, c.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		return Exit{Code: 127}, err
	}
	err := cmd.Wait()
	exit := Exit{Code: cmd.ProcessState.ExitCode()}
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		exit = Exit{Code: 128 + int(status.Signal()), Signal: status.Signal()}
	}
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = nil
	}
	if ctx.Err() != nil && err != nil || ctx.Err() != nil && !exit.ok() {
		err = context.Cause(ctx)
	}
	return exit, err
}

// filesIn returns the files of a call in a directory.
func filesIn(dir string) Files {
	return Files{Output: filepath.Join(dir, "output"), Log: filepath.Join(dir, "log")}
}

// gather returns a function that collects events.
func gather(list *[]Event) func(Event) {
	return func(e Event) { *list = append(*list, e) }
}

func sameType(a, b error) bool {
	return KindOf(a) == KindOf(b) && fmt.Sprintf("%T", a) == fmt.Sprintf("%T", b)
}
