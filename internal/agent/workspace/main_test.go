package workspace

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"lockkeeper/internal/git/gittest"
	"lockkeeper/internal/machine/overlay"
)

// childArg makes the test binary act as a child process of a test.
const childArg = "workspace-child"

func TestMain(m *testing.M) {
	if handled, code := overlay.Main(os.Args); handled {
		os.Exit(code)
	}
	if len(os.Args) >= 3 && os.Args[1] == childArg {
		if err := children[os.Args[2]](os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	gittest.Alone()
	goleak.VerifyTestMain(m)
}

// children are the functions that the test binary can run as a child process.
var children = map[string]func(args []string) error{}
