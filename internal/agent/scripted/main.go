package scripted

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Program is the name under which a program is this agent.
const Program = "lockkeeper-scripted-agent"

// Main is the agent as a process of its own, until it is done, and gives its exit code.
func Main() int {
	dir, err := os.Getwd()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return Run(ctx, Process{Args: os.Args[1:], Script: os.Getenv(ScriptVariable), Dir: dir, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr})
}
