//go:build unix

package workspace

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"lockkeeper/internal/git/gittest"
)

// childArg makes the test binary one of the processes of the tests.
const childArg = "workspace-child"

func TestMain(m *testing.M) {
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

// children are what the test binary can be in place of a test.
var children = map[string]func(args []string) error{}
