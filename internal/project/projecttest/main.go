package projecttest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"lockkeeper/internal/agent/sandbox"
	"lockkeeper/internal/agent/scripted"
	"lockkeeper/internal/git/gittest"
)

// Program is a program that the test's own is, under its name.
type Program struct {
	Name string
	Main func() (code int)
}

// Lockkeeper is the name of the program that is tested.
const Lockkeeper = "lockkeeper"

// Main makes the test's own program what a run starts: a sandbox, and in it, under its
// name, the scripted agent; and what else a test names.
func Main(m *testing.M, also ...Program) {
	if handled, code := sandbox.Main(os.Args); handled {
		os.Exit(code)
	}
	for _, p := range append(also, Program{scripted.Program, scripted.Main}) {
		if filepath.Base(os.Args[0]) == p.Name {
			os.Exit(p.Main())
		}
	}
	os.Setenv("GORACE", goRace)
	gittest.Alone()
	goleak.VerifyTestMain(m)
}

// goRace keeps programs from lingering for a second at their end under the race detector.
const goRace = "atexit_sleep_ms=0"

// Must ends the test if anything went wrong.
func Must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
