package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"lockkeeper/internal/apptest"
	"lockkeeper/internal/cli"
)

// TestMain makes the test's own program, under its name, also the program itself: hooks and
// others start it so.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "lockkeeper" {
		io, err := cli.System()
		if err != nil {
			panic(err)
		}
		os.Exit(cli.Main(context.Background(), io, os.Args[1:]))
	}
	apptest.Main(m)
}
