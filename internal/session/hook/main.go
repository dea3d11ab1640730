package hook

import (
	"context"
	"runtime/debug"
)

// Refused is the exit code that makes a host cancel the call.
const Refused = exitRefuse

// Main runs Run in a process that does nothing else. The process lives for milliseconds, so the
// garbage collector only runs if a large call reaches the memory limit.
func Main(agent string, w Process) int {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(256 << 20)
	return Run(context.Background(), agent, w)
}
