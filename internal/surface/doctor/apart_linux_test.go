package doctor_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The doctor finds an agent that runs in another environment, where its hooks find no program or another store.
func TestAgentInAnotherEnvironment(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change func(env map[string]string)
		want   string
	}{
		"the same":         {func(map[string]string) {}, ""},
		"another PATH":     {func(env map[string]string) { env["PATH"] = "/usr/bin:/bin" }, "every write is refused"},
		"a PATH that does": {func(env map[string]string) { env["PATH"] += ":/nowhere" }, ""},
		"another state":    {func(env map[string]string) { env["XDG_STATE_HOME"] = "/nowhere" }, "other locks"},
		"another store":    {func(env map[string]string) { env["LOCKKEEPER_STORE"] = "/nowhere.db" }, "other locks"},
	} {
		t.Run(name, func(t *testing.T) {
			d := enrolled(t, "claude")
			d.write(filepath.Join(d.bin, "claude"), string(text), 0o755)
			env := map[string]string{}
			for _, name := range []string{"PATH", "HOME", "XDG_STATE_HOME"} {
				env[name], _ = d.settings.Env(name)
			}
			test.change(env)
			cmd := exec.Command(filepath.Join(d.bin, "claude"), "60")
			cmd.Dir = d.settings.Dir
			for name, value := range env {
				cmd.Env = append(cmd.Env, name+"="+value)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				cmd.Process.Kill()
				cmd.Wait()
			}()
			_, _, r := d.ways("claude")
			var told []string
			for _, c := range r.Checks {
				if c.Name == "sessions" && strings.Contains(c.Fact, "was started in another environment") {
					told = append(told, c.Fact)
				}
			}
			if got := strings.Join(told, "\n"); (got == "") != (test.want == "") || !strings.Contains(got, test.want) || r.OK {
				t.Errorf("told %q", got)
			}
		})
	}
}
