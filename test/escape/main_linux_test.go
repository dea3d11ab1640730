package escape

import (
	"testing"

	"lockkeeper/internal/apptest"
	"lockkeeper/internal/cli"
)

// The names under which the test program is something else.
const (
	agentName   = "escape-agent"   // what the run starts
	attemptName = "escape-attempt" // one attempt that needs a process of its own
	victimName  = "escape-victim"  // a process of the same user, with a secret in its memory
	withoutName = "escape-without" // starts a command on a machine that lacks something
)

func TestMain(m *testing.M) {
	apptest.Main(m,
		apptest.Program{Name: apptest.Lockkeeper, Main: cli.Process},
		apptest.Program{Name: agentName, Main: agentMain},
		apptest.Program{Name: attemptName, Main: attemptMain},
		apptest.Program{Name: victimName, Main: victimMain},
		apptest.Program{Name: withoutName, Main: withoutMain})
}
