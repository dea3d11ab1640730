package cli_test

import (
	"testing"

	"lockkeeper/internal/apptest"
	"lockkeeper/internal/cli"
)

// TestMain makes the test's own program, under its name, also the program itself: hooks and
// others start it so.
func TestMain(m *testing.M) {
	apptest.Main(m, apptest.Program{Name: apptest.Lockkeeper, Main: cli.Process})
}
