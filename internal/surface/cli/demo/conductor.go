package demo

import (
	"fmt"
	"os/exec"
	"strings"

	"lockkeeper/internal/encoding/shellword"
)

// conductor is a run in the background, shown line by line.
type conductor struct {
	cmd   *exec.Cmd
	ended chan struct{}
	// After it has ended:
	err  error
	last []string // its last lines
}

// failure returns why a run ended too early.
func (c *conductor) failure(reason string) error {
	return fmt.Errorf("%s: %s (%v): %s", shellword.Join(c.cmd.Args), reason, c.cmd.ProcessState, strings.Join(c.last, "; "))
}
