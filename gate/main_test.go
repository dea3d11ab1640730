package gate_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"lockkeeper/store/storetest"
)

// childArg makes the test binary run as a child process.
const childArg = "gate-child"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == childArg {
		os.Exit(child(os.Args[2]))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		database.Drop()
		os.Exit(code)
	}))
}

// database is shared by all tests of the run.
var database = &storetest.Database{Prefix: "gate"}
