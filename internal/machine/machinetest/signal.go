package machinetest

import (
	"os"
	"os/signal"
	"syscall"
)

// Interruptible lets the signals of a terminal end the programs that tests start. A shell without
// job control ignores these signals in commands that it starts in the background, and children
// inherit that. They do not inherit a handler. A TestMain calls this, but not in a process that
// is such a program itself.
func Interruptible() {
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGHUP, syscall.SIGQUIT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}
