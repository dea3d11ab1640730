package demo

import (
	"fmt"
	"os/exec"
	"strings"

	"lockkeeper/internal/encoding/shellword"
)

// conductor is a run that goes on in the background, and is shown line by line.
type conductor struct {
	cmd   *exec.Cmd
	ended chan struct{}
	// Once it has ended:
	err  error
	last []string // what it said at the end
}

// failure is why a run that was to go on ended.
func (c *conductor) failure(reason string) error {
	return fmt.Errorf("%s: %s (%v): %s", shellword.Join(c.cmd.Args), reason, c.cmd.ProcessState, strings.Join(c.last, "; "))
}
