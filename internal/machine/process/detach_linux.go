package process

import (
	"fmt"
	"io"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// detach keeps a background command away from the person's terminal. The command
// inherits only its standard files, and no descriptor of a terminal. Its keeper
// gives it its own session, so it has no controlling terminal to type into.
func (c *Command) detach(cmd *exec.Cmd) error {
	if isTerminal(c.Stdin) {
		cmd.Stdin = nil
	}
	// os/exec copies to a writer that is not an *os.File through a pipe.
	if isTerminal(c.Stdout) {
		cmd.Stdout = struct{ io.Writer }{c.Stdout}
	}
	if isTerminal(c.Stderr) {
		cmd.Stderr = struct{ io.Writer }{c.Stderr}
	}
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("keep open files from the command: %w", err)
	}
	return nil
}

func isTerminal(f *os.File) bool {
	if f == nil {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
