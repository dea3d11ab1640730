package author_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"lockkeeper/internal/compat/author"
)

// In a container, the program that starts a command with docker exec is not visible. Its session
// needs a name, because two such callers could not be distinguished.
func TestCallerOutsideOfTheContainerNamesItsSession(t *testing.T) {
	const variable = "INSTANCE_IN_A_CONTAINER"
	if _, inside := os.LookupEnv(variable); inside {
		i, err := author.InstanceOf(os.Environ(), "", "", ada)
		if err != nil {
			fmt.Printf("refused: %v\n", err)
			return
		}
		fmt.Printf("instance %s, named %t, of pid %d\n", i.ID, i.Named, i.Process.PID)
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("only root may make a PID namespace like that of a container")
	}
	exe, err := os.Executable()
	must(t, err)
	for name, want := range map[string]string{
		"":        "set LOCKKEEPER_INSTANCE, or use --instance ID",
		"chapter": "instance chapter, named true, of pid 1\n",
	} {
		cmd := exec.Command("unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", exe, "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), variable+"=1", author.InstanceVariable+"="+name)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("session %q: %v: %q is not in %s", name, err, want, out)
		}
	}
}
