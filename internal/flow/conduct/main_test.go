package conduct

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"lockkeeper/internal/agent/sandbox"
)

func TestMain(m *testing.M) {
	if handled, code := sandbox.Main(os.Args); handled {
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}
