//go:build unix

package scripted

import (
	"fmt"
	"os/exec"
	"syscall"
	"time"
)

// spawn starts a process in a session of its own, as a server does that an agent leaves
// behind.
func spawn(lasts time.Duration) error {
	cmd := exec.Command("sleep", fmt.Sprint(lasts.Seconds()))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Start()
}
