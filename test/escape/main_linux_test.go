package escape

import (
	"testing"

	"lockkeeper/internal/project/projecttest"
	"lockkeeper/internal/surface/cli"
)

// Names under which the test program has another role.
const (
	agentName   = "escape-agent"   // the agent that the run starts
	attemptName = "escape-attempt" // an attempt that needs its own process
	victimName  = "escape-victim"  // a process of the same user, with a secret in its memory
	withoutName = "escape-without" // starts a command on a machine that lacks a feature
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
