package cli_test

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"lockkeeper/internal/agent/scripted"
	"lockkeeper/internal/sandbox"
)

// TestMain makes the test's own program what a run starts: a sandbox, and in it, under
// its name, the scripted agent.
func TestMain(m *testing.M) {
	if handled, code := sandbox.Main(os.Args); handled {
		os.Exit(code)
	}
	if filepath.Base(os.Args[0]) == scripted.Program {
		os.Exit(scripted.Main())
	}
	goleak.VerifyTestMain(m)
}
