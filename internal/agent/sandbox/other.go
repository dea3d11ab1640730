//go:build !linux

package sandbox

import (
	"context"
	"runtime"
)

// Probe returns the zero Level, because this system has no sandbox.
func Probe(context.Context) (Level, error) {
	return Level{Missing: "there is no sandbox for " + runtime.GOOS}, nil
}

// Main does nothing, because Wrap wraps no command on this system.
func Main([]string) (handled bool, code int) { return false, 0 }
