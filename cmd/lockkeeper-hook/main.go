package main

import (
	"fmt"
	"os"

	"lockkeeper/internal/project"
	"lockkeeper/internal/session/hook"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: lockkeeper-hook claude-code|codex|gemini <call.json; see lockkeeper hook --help")
		os.Exit(hook.Refused) // an incorrectly configured hook must not permit a write
	}
	agent := os.Args[1]
	if agent == "--version" {
		fmt.Println("lockkeeper-hook " + project.Version())
		return
	}
	os.Exit(hook.Main(agent, hook.World{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.LookupEnv,
		Postgres: func(call []byte) error { return execMain(agent, call) }}))
}
