//go:build agents

// The tests in this directory run the real Claude Code, Codex, Gemini CLI and opencode against a
// scripted API on loopback. They use the adapters and the supervisor of the program.
// `make test-agents` installs the agents.
package agents_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"lockkeeper/internal/agent/sandbox"
	"lockkeeper/internal/git/gittest"
)

func TestMain(m *testing.M) {
	if handled, code := sandbox.Main(os.Args); handled {
		os.Exit(code)
	}
	if len(os.Args) == 2 && os.Args[1] == filesServer {
		os.Exit(serveFiles())
	}
	gittest.Alone()
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := os.RemoveAll(builtDir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		os.Exit(code)
	}))
}
