//go:build machines

package machines

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"lockkeeper/internal/project/projecttest"
	"lockkeeper/internal/surface/cli"
)

// Names under which the test program has another role.
const (
	initName = "machine-init" // the first process of a machine
	workName = "checked-work" // a command that runs under a lock
)

var must = projecttest.Must

func TestMain(m *testing.M) {
	if err := shiftClock(); err != nil {
		fmt.Fprintln(os.Stderr, "machines:", err)
		os.Exit(1)
	}
	programs := []projecttest.Program{
		{Name: projecttest.Lockkeeper, Main: cli.Process},
		{Name: initName, Main: initMain},
		{Name: workName, Main: workMain},
	}
	if os.Getenv(insideVariable) == "" {
		programs = append(programs, projecttest.Program{Name: filepath.Base(os.Args[0]), Main: outside})
	} else if filepath.Base(os.Args[0]) == suiteName {
		if err := inside(programs); err != nil {
			fmt.Fprintln(os.Stderr, "machines:", err)
			os.Exit(1)
		}
	}
	projecttest.Main(m, programs...)
}
