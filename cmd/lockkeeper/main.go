package main

import (
	"os"
	"path/filepath"

	"lockkeeper/internal/agent/sandbox"
	"lockkeeper/internal/agent/scripted"
	"lockkeeper/internal/surface/cli"
)

func main() {
	// Commands in a sandbox are started through this program.
	if handled, code := sandbox.Main(os.Args); handled {
		os.Exit(code)
	}
	// If the program has the name of the scripted agent, it acts as that agent, so that a
	// demonstration needs no other program.
	if filepath.Base(os.Args[0]) == scripted.Program {
		os.Exit(scripted.Main())
	}
	os.Exit(cli.Process())
}
