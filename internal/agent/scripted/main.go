package scripted

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Program is the name of the executable that acts as this agent.
const Program = "lockkeeper-scripted-agent"

// Main runs the agent as its own process and returns its exit code.
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
