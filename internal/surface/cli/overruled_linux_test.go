package cli_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper/internal/project/projecttest"
)

// If a person force-releases the locks of a running command, the command ends with the exit code of a lost
// grant. The message and the event log say who released the locks and why.
//
// shows: CF-9 CF-14
func TestForceReleaseOfARunningCommand(t *testing.T) {
	d := newConsole(t)
	self := filepath.Join(t.TempDir(), projecttest.Lockkeeper)
	own, err := os.Executable()
	projecttest.Must(t, err, os.Symlink(own, self))
	for range 3 { // repeated, because the kill and the loss can be noticed in either order
		cmd := exec.Command(self, "lock", "exec", "--holder", "otter", "--write", "a", "--", "sh", "-c", "echo $LOCKKEEPER_GRANT; exec sleep 60")
		var complaint strings.Builder
		cmd.Dir, cmd.Env, cmd.Stderr = d.dir, append(os.Environ(), d.env...), &complaint
		out, err := cmd.StdoutPipe()
		projecttest.Must(t, err, cmd.Start())
		grant, err := bufio.NewReader(out).ReadString('\n')
		projecttest.Must(t, err)
		d.answering("otter", 0, "lock", "force-release", strings.TrimSpace(grant), "--reason", "gone home")
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 125 || !strings.Contains(complaint.String(), " by ada at ") || !strings.Contains(complaint.String(), "gone home") {
			t.Errorf("ended with %v, and says %q", err, complaint.String())
		}
	}
	if forced := strings.Count(d.must(0, "audit", "--json"), `"kind":"force_released"`); forced != 3 {
		t.Errorf("%d are recorded", forced)
	}
}
