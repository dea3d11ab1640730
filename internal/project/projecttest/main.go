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
	"lockkeeper/internal/machine/machinetest"
)

// A Program is a role of the test binary. If the binary is called by this name, it runs as that
// program.
type Program struct {
	Name string
	Main func() (code int)
}

// Lockkeeper is the name of the program under test.
const Lockkeeper = "lockkeeper"

// Main lets the test binary act as the programs that a run starts: the sandbox, the scripted
// agent, and further programs, each by its name.
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
	machinetest.Interruptible()
	goleak.VerifyTestMain(m)
}

// goRace keeps programs from lingering for a second at their end under the race detector.
const goRace = "atexit_sleep_ms=0"

// Must fails the test if an error is not nil.
func Must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
