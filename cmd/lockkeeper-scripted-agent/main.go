package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"lockkeeper/internal/agent/scripted"
)

func main() {
	dir, err := os.Getwd()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	os.Exit(scripted.Run(ctx, scripted.Process{
		Args: os.Args[1:], Script: os.Getenv(scripted.ScriptVariable), Dir: dir,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	}))
}
