package cli_test

import (
	"testing"

	"lockkeeper/internal/project/projecttest"
	"lockkeeper/internal/surface/cli"
)

// TestMain makes the test's own program, under its name, also the program itself: hooks and
// others start it so.
func TestMain(m *testing.M) {
	projecttest.Main(m, projecttest.Program{Name: projecttest.Lockkeeper, Main: cli.Process})
}
