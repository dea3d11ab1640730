//go:build ui

// The tests in this directory use the dashboard as people do: in a real browser, with keys
// and clicks, on the sample application whose agents are scripted. `make test-ui` installs
// the browser.
package ui_test

import (
	"errors"
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

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
