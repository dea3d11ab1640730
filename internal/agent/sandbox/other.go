//go:build !linux

package sandbox

import (
	"context"
	"runtime"
)

// Probe finds nothing: there is no sandbox on this system.
func Probe(context.Context) (Level, error) {
	return Level{Missing: "there is no sandbox for " + runtime.GOOS}, nil
}

// Main has nothing to do: no command was wrapped.
func Main([]string) (handled bool, code int) { return false, 0 }
