package process

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/machine/boot"
)

// A process of another boot is dead only with proof that its boot used the same
// directory and ended before this one began.
//
// shows: GP-32
func TestRestartNeedsProof(t *testing.T) {
	dir := t.TempDir()
	h, err := NewHost(dir)
	if err != nil {
		t.Fatal(err)
	}
	now, err := boot.Started()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, bootsDir, h.self.Boot)); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		host  string        // host in the note; empty: no note
		ago   time.Duration // from the start of that boot to the start of this one
		start time.Duration // from the start of that boot to the start of the process
		want  lockkeeper.Liveness
	}{
		"machine started again":                 {h.self.Host, 48 * time.Hour, time.Hour, lockkeeper.ProcessDead},
		"process started after this boot":       {h.self.Host, 48 * time.Hour, 49 * time.Hour, lockkeeper.ProcessUnknown},
		"container with another id":             {h.self.Host, 0, time.Hour, lockkeeper.ProcessUnknown},
		"container with another id, early":      {h.self.Host, 0, 0, lockkeeper.ProcessUnknown},
		"boot that never used this directory":   {"", 48 * time.Hour, time.Hour, lockkeeper.ProcessUnknown},
		"note of another machine with its name": {"other/0000", 48 * time.Hour, time.Hour, lockkeeper.ProcessUnknown},
	} {
		p := h.self
		p.Boot, p.Start = "of-another-boot", max(1, uint64(test.start/(time.Second/ticks)))
		note := filepath.Join(dir, bootsDir, p.Boot)
		os.Remove(note)
		if test.host != "" {
			if err := os.WriteFile(note, fmt.Appendf(nil, "%s %d\n", test.host, now.Add(-test.ago).Unix()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := h.Liveness(p); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	p := h.self
	p.Boot = "../" + bootsDir + "/of-another-boot"
	wantLife(t, h, p, lockkeeper.ProcessUnknown)
}

// A network disk, which another machine may use at the same time, proves nothing.
func TestNoProofOnANetworkDisk(t *testing.T) {
	if !local(t.TempDir()) {
		t.Error("the directory for temporary files counts as a network disk")
	}
	if local(filepath.Join(t.TempDir(), "missing")) {
		t.Error("what is not there counts as local")
	}
}

// A container with another boot id does not judge a living process as dead, in the same PID
// namespace or another one.
//
// shows: GP-32
func TestOtherBootIDOnTheSameKernel(t *testing.T) {
	dir := t.TempDir()
	if _, err := NewHost(dir); err != nil {
		t.Fatal(err)
	}
	c := launch(t, nil, helperArgv("sleep")...)
	p := identify(t, c.next("ready"))
	for _, flags := range [][]string{{"--mount"}, {"--mount", "--pid", "--fork", "--mount-proc"}} {
		if said := judgeIn(t, flags, true, dir, p); said != "unknown" {
			t.Errorf("%v: a living process is %s", flags, said)
		}
	}
	c.cmd.Process.Kill()
	c.cmd.Wait() // the kernel kills later than Kill returns
	if said := judgeIn(t, nil, false, dir, p); said != "dead" {
		t.Errorf("a dead process is %s", said)
	}
}

// judgeIn asks a helper in other namespaces whether a process is alive. If masked is set, the
// helper sees another boot id.
func judgeIn(t *testing.T, flags []string, masked bool, dir string, p lockkeeper.Process) string {
	t.Helper()
	if len(flags) > 0 && os.Geteuid() != 0 {
		t.Skip("only root may mount over /proc")
	}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	argv := helperArgv("judge", dir, string(text))
	if len(flags) > 0 {
		fake := filepath.Join(t.TempDir(), "boot_id")
		if err := os.WriteFile(fake, []byte("11111111-2222-3333-4444-555555555555\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		mask := `exec "$@"`
		if masked {
			mask = "mount --bind " + fake + " /proc/sys/kernel/random/boot_id && " + mask
		}
		argv = append(append(append([]string{"unshare"}, flags...), "sh", "-c", mask, "sh"), argv...)
	}
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}
