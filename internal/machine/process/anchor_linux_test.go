package process_test

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/machine/process"
)

// The anchor of an agent's commands is the agent: the nearest ancestor whose environment does not
// have the signs of an agent.
//
// shows: LM-25
func TestAnchorOfAnAgentIsTheAgent(t *testing.T) {
	if os.Getenv("ANCHOR_OF") != "" {
		p, err := process.Anchor(os.Environ())
		if err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString("anchor " + strconv.Itoa(p.PID) + "\n")
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Each shell has another shell above it. The agent is this process.
	cmd := exec.Command("sh", "-c", `sh -c '"$0" -test.run=TestAnchorOfAnAgentIsTheAgent; :' "$0"; :`, exe)
	cmd.Env = append(os.Environ(), "ANCHOR_OF=1", "CLAUDECODE=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, inside := process.AgentEnvironment(os.Environ()); inside {
		return // the test itself runs inside of an agent, which is further above
	}
	if want := "anchor " + strconv.Itoa(os.Getpid()) + "\n"; !strings.Contains(string(out), want) {
		t.Errorf("%q is not in %s", want, out)
	}
}

// Without an agent, the anchor is a living ancestor of the caller.
func TestAnchorLives(t *testing.T) {
	p, err := process.Anchor(nil)
	if err != nil {
		t.Fatal(err)
	}
	host, err := process.NewHost("")
	if err != nil {
		t.Fatal(err)
	}
	if p.PID == os.Getpid() || host.Liveness(p) != lockkeeper.ProcessAlive {
		t.Errorf("the anchor of %d is %+v, which is %s", os.Getpid(), p, host.Liveness(p))
	}
}
