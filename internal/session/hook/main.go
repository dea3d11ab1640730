package hook

import (
	"context"
	"runtime/debug"
)

// Refused is the exit code that keeps a host from making a call.
const Refused = exitRefuse

// Main is Run for a process that does nothing else. It lives for milliseconds and allocates
// little: a collector would only cost time, unless the call is a large one.
func Main(agent string, w World) int {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(256 << 20)
	return Run(context.Background(), agent, w)
}
