package escape

import (
	"testing"

	"lockkeeper/internal/project/projecttest"
	"lockkeeper/internal/surface/cli"
)

// The names under which the test program is something else.
const (
	agentName   = "escape-agent"   // what the run starts
	attemptName = "escape-attempt" // one attempt that needs a process of its own
	victimName  = "escape-victim"  // a process of the same user, with a secret in its memory
	withoutName = "escape-without" // starts a command on a machine that lacks something
)

func TestMain(m *testing.M) {
	programs := []projecttest.Program{
		{Name: projecttest.Lockkeeper, Main: cli.Process},
		{Name: agentName, Main: agentMain},
		{Name: attemptName, Main: attemptMain},
		{Name: victimName, Main: victimMain},
		{Name: withoutName, Main: withoutMain},
	}
	for _, o := range ownDirs {
		programs = append(programs, projecttest.Program{Name: o.agent, Main: o.main})
	}
	projecttest.Main(m, programs...)
}
